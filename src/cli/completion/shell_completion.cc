#include "cli/completion/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <sstream>

namespace paceline {
namespace {

bool starts_with_small_letter(const std::string& text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z';
}

CommandNode& node_of(std::vector<CommandNode>& tree, const std::string& path) {
  const auto known = std::ranges::find(tree, path, &CommandNode::path);
  return known != tree.end() ? *known : tree.emplace_back(CommandNode{.path = path});
}

// Adds a node for each word of the line's name; the last node gets the line's flags.
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

std::vector<std::string> choices_of(const std::string& placeholder) {
  std::vector<std::string> choices;
  std::istringstream parts(placeholder);
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
  return choices_of(flag.placeholder).empty() ? Takes::kText : Takes::kChoice;
}

void add_word(CommandNode& node, const std::string& text, const std::string& help) {
  if (std::ranges::find(node.words, text, &CommandNode::Word::text) == node.words.end()) {
    node.words.push_back({text, help});
  }
}

std::vector<CommandNode> command_nodes(std::span<const CommandLine> lines) {
  std::vector<CommandNode> nodes;
  for (const CommandLine& line : lines) {
    if (nodes.empty()) nodes.push_back({.path = line.name.substr(0, line.name.find(' '))});
    add_line(nodes, line);
  }
  return nodes;
}

const char* const kShells = "bash|zsh|fish";

std::string shell_completion(std::string_view shell, const std::vector<CommandNode>& nodes) {
  if (shell == "zsh") return zsh_completion(nodes);
  if (shell == "fish") return fish_completion(nodes);
  return bash_completion(nodes);
}

std::string case_of_paths(const std::vector<CommandNode>& nodes) {
  std::vector<std::string> paths;
  paths.reserve(nodes.size());
  for (const CommandNode& node : nodes) paths.push_back(fmt::format("'{}'", node.path));
  return fmt::format("{}", fmt::join(paths, "|"));
}

std::string completion_function(const std::vector<CommandNode>& nodes) {
  std::string name = "_" + nodes.front().path;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(std::uint8_t(c)) == 0; }, '_');
  return name;
}

}  // namespace paceline
