#include "paceline/version.h"

#include <fmt/format.h>

#include "cluster/flags/command_line.h"
#include "tools/subcommand.h"

namespace paceline {

std::vector<CommandLine> version_lines() {
  return {{"paceline version", "Prints the versions that a bug report needs.", "", {}}};
}

int version_command(const Arguments& arguments) {
  if (parse(version_lines().front(), arguments)) fmt::print("{}", version_text());
  return 0;
}

}  // namespace paceline
