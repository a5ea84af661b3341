// What may be typed after each word of `paceline …`, from the tables that --help prints.
#pragma once

#include <string>
#include <vector>

#include "cluster/flags/command_line.h"

namespace paceline {

/// What a flag or an argument takes.
enum class Takes { kNothing, kText, kFile, kFolder, kChoice };
Takes what_it_takes(const Flag& flag);
/// "cpu|sim[:I]": cpu, sim.
std::vector<std::string> choices_of(const Flag& flag);

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

/// Of every subcommand; a node stands after the one that leads to it.
std::vector<CommandNode> command_tree();

}  // namespace paceline
