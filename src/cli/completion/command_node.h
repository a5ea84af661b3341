// The words and flags that may follow each word of a command, from the tables that --help prints.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// The kind of value that a flag or an argument takes.
enum class Takes { kNothing, kText, kFile, kFolder, kChoice };
Takes what_it_takes(const Flag& flag);
/// The words of a placeholder: of "cpu|sim[:I]", cpu and sim.
std::vector<std::string> choices_of(const std::string& placeholder);

/// A command line as far as it was typed.
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

}  // namespace paceline
