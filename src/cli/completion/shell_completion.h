// Scripts that make a shell complete what may follow a command.
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
/// The words of a placeholder: of "cpu|sim[:I]", cpu and sim.
std::vector<std::string> choices_of(const std::string& placeholder);

/// A command line as far as it was typed, and the words and flags that may follow it, from the
/// tables that --help prints.
struct CommandNode {
  struct Word {
    std::string text, help;
  };
  std::string path;                    // "paceline train"
  std::vector<Word> words = {};        // that may follow
  std::vector<Flag> flags = {};        // shown ones, --help too
  std::vector<Flag> positionals = {};  // arguments without dashes, in their order
};

/// Adds `text` to the words that may follow, unless it is one of them already.
void add_word(CommandNode& node, const std::string& text, const std::string& help);
/// The nodes of command lines whose names begin with the same word; that word's node is the first.
/// A node stands after the one that leads to it.
std::vector<CommandNode> command_nodes(std::span<const CommandLine> lines);

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
