// Scripts with which a shell completes what may follow a command.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// The kind of value that a flag or an argument takes.
enum class Takes { kNothing, kText, kFile, kFolder, kChoice };
Takes what_it_takes(const Flag& flag);
/// Returns the words of a placeholder: cpu and sim for "cpu|sim[:I]".
std::vector<std::string> choices_of(const std::string& placeholder);

/// A command line as far as it was typed, and the words and flags that may follow it, according to
/// the tables that --help prints.
struct CommandNode {
  struct Word {
    std::string text, help;
  };
  std::string path;                    // "paceline train"
  std::vector<Word> words = {};        // that may follow
  std::vector<Flag> flags = {};        // those that --help shows, and --help itself
  std::vector<Flag> positionals = {};  // arguments without dashes, in their order
};

/// Adds `text` to the words that may follow, unless it is already one of them.
void add_word(CommandNode& node, const std::string& text, const std::string& help);
/// Returns the nodes of command lines whose names begin with the same word; that word's node is the
/// first. Each node stands behind the node that leads to it.
std::vector<CommandNode> command_nodes(std::span<const CommandLine> lines);

/// The shells for which there is completion, as --completion and `paceline completion` name them:
/// "bash|zsh|fish".
extern const char* const kShells;

/// Returns the script for a shell, one of kShells. The command is the path of the first node.
std::string shell_completion(std::string_view shell, const std::vector<CommandNode>& nodes);

/// Returns a script that can be sourced, or stored as a file in share/bash-completion/completions.
/// It needs bash 4.4 and nothing else.
std::string bash_completion(const std::vector<CommandNode>& nodes);
/// Returns a script that can be sourced after compinit, or stored as the file _COMMAND in a folder
/// of $fpath.
std::string zsh_completion(const std::vector<CommandNode>& nodes);
/// Returns a script that can be sourced, or stored as the file COMMAND.fish in
/// share/fish/vendor_completions.d.
std::string fish_completion(const std::vector<CommandNode>& nodes);

/// Returns a pattern for `case` in bash or zsh that matches all command lines which lead to a node:
/// "'paceline train'|'paceline train mlp'".
std::string case_of_paths(const std::vector<CommandNode>& nodes);
/// Returns the name of the function that completes a command: "_own_model" for own-model.
std::string completion_function(const std::vector<CommandNode>& nodes);

}  // namespace paceline
