#include <fmt/format.h>

#include "tools/shell_completion.h"
#include "tools/subcommand.h"

namespace paceline {

std::vector<CommandLine> completion_lines() {
  return {{"paceline completion",
           "Prints a script that makes a shell complete paceline's flags.",
           R"(Installed packages contain both scripts. Otherwise, in the shell that is open:
  source <(paceline completion bash)
  source <(paceline completion zsh)      after: autoload -U compinit; compinit)",
           {{"SHELL", "bash|zsh", "the shell", "Arguments"}}}};
}

int completion_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(completion_lines().front(), arguments);
  if (!values) return 0;
  const bool zsh = values->choice("SHELL", {"bash", "zsh"}) == "zsh";
  fmt::print("{}", zsh ? zsh_completion(command_tree()) : bash_completion(command_tree()));
  return 0;
}

}  // namespace paceline
