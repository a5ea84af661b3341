#include "paceline/version.h"

#include <fmt/format.h>

#include "cli/flags/command_line.h"
#include "predict/machine_facts.h"
#include "tools/subcommand.h"

namespace paceline {

std::vector<CommandLine> version_lines() {
  return {{"paceline version", "Prints the versions that a bug report needs.", "", {}}};
}

int version_command(const Arguments& arguments) {
  if (!parse(version_lines().front(), arguments)) return 0;
  fmt::print("{}", version_text());
  if (const std::string machine = noted_host_text(); !machine.empty()) {
    fmt::print("machine: {}\n", machine);
  }
  return 0;
}

}  // namespace paceline
