#include <fmt/format.h>

#include "cli/completion/shell_completion.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

std::vector<CommandNode> command_tree() {
  std::vector<CommandLine> lines;
  for (const Subcommand& subcommand : all_subcommands()) {
    for (CommandLine& line : subcommand.lines()) lines.push_back(std::move(line));
  }
  std::vector<CommandNode> tree = command_nodes(lines);
  // The first node has all words of `paceline`: these are replaced by the words and help of
  // `paceline --help`, in its order.
  tree.front().words.clear();
  for (const Subcommand& subcommand : all_subcommands()) {
    add_word(tree.front(), std::string(subcommand.name), std::string(subcommand.help));
  }
  return tree;
}

}  // namespace

std::vector<CommandLine> completion_lines() {
  return {{"paceline completion",
           "Prints a script that makes a shell complete paceline's flags.",
           R"(Installed packages contain the scripts. Otherwise, in the shell that is open:
  source <(paceline completion bash)
  source <(paceline completion zsh)      after: autoload -U compinit; compinit
  paceline completion fish | source)",
           {{"SHELL", kShells, "The shell", "Arguments"}}}};
}

int completion_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(completion_lines().front(), arguments);
  if (!values) return 0;
  const std::string shell = *values->choice("SHELL", choices_of(kShells));
  fmt::print("{}", shell_completion(shell, command_tree()));
  return 0;
}

}  // namespace paceline
