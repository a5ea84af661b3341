#include "paceline/version.h"

#include <fmt/format.h>

#include "cluster/command_line.h"
#include "tools/subcommand.h"

namespace paceline {

int version_command(const Arguments& arguments) {
  const CommandLine line{"paceline version", "Prints what a bug report needs.", "", {}};
  if (parse(line, arguments)) fmt::print("{}", version_text());
  return 0;
}

}  // namespace paceline
