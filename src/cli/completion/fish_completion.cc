#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "cli/completion/shell_completion.h"

namespace paceline {
namespace {

const char* const kFishScript = R"(# fish completion for {command}
function _{function}_at
  set -l line {command}
  for word in (commandline -opc)[2..-1]
    switch "$line $word"
      case {paths}
        set line "$line $word"
    end
  end
  test "$line" = "$argv[1]"
end
complete -c {command} -f
{lines})";

std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

// Returns the options of `complete` for the value of a flag: no value, a file, a folder, or one of
// some words.
std::string fish_values(const Flag& flag) {
  switch (what_it_takes(flag)) {
    case Takes::kNothing:
      return "";
    case Takes::kFile:
      return " -r -F";
    case Takes::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case Takes::kChoice:
      return fmt::format(" -x -a '{}'", fmt::join(choices_of(flag.placeholder), " "));
    case Takes::kText:
      break;
  }
  return flag.completions.empty() ? " -x"
                                  : fmt::format(" -x -a '{}'", fmt::join(flag.completions, " "));
}

std::string fish_positional(const Flag& argument) {
  if (what_it_takes(argument) == Takes::kFile) return " -F";
  return fmt::format(" -a '{}'", fmt::join(choices_of(argument.placeholder), " "));
}

std::string fish_lines(const CommandNode& node, const std::string& command,
                       const std::string& function) {
  const std::string begin =
      fmt::format("complete -c {} -n \"_{}_at '{}'\"", command, function, node.path);
  std::string text;
  for (const CommandNode::Word& word : node.words) {
    text += fmt::format("{} -a {} -d {}\n", begin, word.text, fish_quoted(word.help));
  }
  for (const Flag& flag : node.flags) {
    text += fmt::format("{} -l {}{} -d {}\n", begin, flag.name.substr(2), fish_values(flag),
                        fish_quoted(flag.help));
  }
  for (const Flag& argument : node.positionals) {
    text += begin + fish_positional(argument) + "\n";
  }
  return text;
}

}  // namespace

std::string fish_completion(const std::vector<CommandNode>& nodes) {
  const std::string command = nodes.front().path, function = completion_function(nodes);
  std::string lines, paths;
  for (const CommandNode& node : nodes) {
    lines += fish_lines(node, command, function);
    paths += fmt::format("{}'{}'", paths.empty() ? "" : " ", node.path);
  }
  return fmt::format(fmt::runtime(kFishScript), fmt::arg("command", command),
                     fmt::arg("function", function), fmt::arg("paths", paths),
                     fmt::arg("lines", lines));
}

}  // namespace paceline
