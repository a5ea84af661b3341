// Scripts that make a shell complete what may follow `paceline`.
#pragma once

#include <string>
#include <vector>

#include "tools/command_tree.h"

namespace paceline {

/// To be sourced, or a file of share/bash-completion/completions; needs nothing but bash 4.4.
std::string bash_completion(const std::vector<CommandNode>& tree);
/// To be sourced after compinit, or the file _paceline of a folder of $fpath.
std::string zsh_completion(const std::vector<CommandNode>& tree);
/// "'paceline train'|'paceline train mlp'": a pattern of either shell's case that matches what
/// leads to a node.
std::string case_of_paths(const std::vector<CommandNode>& tree);

}  // namespace paceline
