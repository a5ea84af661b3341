#include "cli/completion/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace paceline {

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
