// Scripts that make a shell complete what may follow a command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/completion/command_node.h"

namespace paceline {

/// The shells whose completion there is, as --completion and `paceline completion` take them:
/// "bash|zsh|fish".
extern const char* const kShells;

/// The script for a shell, one of kShells. The command is the path of the first node.
std::string shell_completion(std::string_view shell, const std::vector<CommandNode>& nodes);

/// A script to be sourced, or a file of share/bash-completion/completions; it needs nothing but
/// bash 4.4.
std::string bash_completion(const std::vector<CommandNode>& nodes);
/// A script to be sourced after compinit, or the file _COMMAND of a folder of $fpath.
std::string zsh_completion(const std::vector<CommandNode>& nodes);
/// A script to be sourced, or a file COMMAND.fish of share/fish/vendor_completions.d.
std::string fish_completion(const std::vector<CommandNode>& nodes);

/// "'paceline train'|'paceline train mlp'": a pattern of the case of bash or zsh that matches what
/// leads to a node.
std::string case_of_paths(const std::vector<CommandNode>& nodes);
/// The name of the function that completes: "_own_model" of own-model.
std::string completion_function(const std::vector<CommandNode>& nodes);

}  // namespace paceline
