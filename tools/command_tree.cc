#include "tools/command_tree.h"

#include <algorithm>
#include <sstream>

#include "tools/subcommand.h"

namespace paceline {
namespace {

bool starts_with_small_letter(const std::string& text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z';
}

CommandNode& node_of(std::vector<CommandNode>& tree, const std::string& path) {
  const auto known = std::ranges::find(tree, path, &CommandNode::path);
  return known != tree.end() ? *known : tree.emplace_back(CommandNode{.path = path});
}

void add_word(CommandNode& node, const std::string& text, const std::string& help) {
  if (std::ranges::find(node.words, text, &CommandNode::Word::text) == node.words.end()) {
    node.words.push_back({text, help});
  }
}

// The nodes from "paceline" to the line, whose last one has its flags.
void add_line(std::vector<CommandNode>& tree, const CommandLine& line) {
  std::istringstream words(line.name);
  std::string path, word;
  words >> path;
  while (words >> word) {
    add_word(node_of(tree, path), word, line.about.substr(0, line.about.find('\n')));
    path += " " + word;
  }
  CommandNode& node = node_of(tree, path);
  for (const std::string& text : line.words) add_word(node, text, "");
  node.flags.push_back({"--help", "", "Print this and end", "Options"});
  for (const Flag& flag : line.flags) {
    if (!flag.group.empty()) {
      (flag.name.starts_with('-') ? node.flags : node.positionals).push_back(flag);
    }
  }
}

}  // namespace

std::vector<std::string> choices_of(const Flag& flag) {
  std::vector<std::string> choices;
  std::istringstream parts(flag.placeholder);
  for (std::string part; std::getline(parts, part, '|');) {
    if (!starts_with_small_letter(part)) return {};
    choices.push_back(part.substr(0, part.find('[')));
  }
  return choices;
}

Takes what_it_takes(const Flag& flag) {
  if (flag.placeholder.empty()) return Takes::kNothing;
  if (flag.placeholder.starts_with("DIR")) return Takes::kFolder;
  for (const char* file : {"FILE", "PATH", "OTHER"}) {
    if (flag.placeholder.starts_with(file)) return Takes::kFile;
  }
  return choices_of(flag).empty() ? Takes::kText : Takes::kChoice;
}

std::vector<CommandNode> command_tree() {
  std::vector<CommandNode> tree = {{.path = "paceline"}};
  for (const Subcommand& subcommand : all_subcommands()) {
    add_word(tree.front(), std::string(subcommand.name), std::string(subcommand.help));
    for (const CommandLine& line : subcommand.lines()) add_line(tree, line);
  }
  return tree;
}

}  // namespace paceline
