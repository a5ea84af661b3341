// Flags that are given in a file: `--config job.toml`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"
#include "run/config/config_value.h"

namespace paceline {

/// Returns the flags of a file. Each key is a flag of `line` without its dashes ("worker-hosts" or
/// "worker_hosts"). A value is a text or a number; for a switch, true or false; for a flag that
/// takes several values, a list. `cluster` may be a table of lists {ps, worker}, and `set` a table
/// of hyper-parameters. Throws kUsage, beginning with file, line and column, for a text that cannot
/// be read, an unknown key (naming the nearest one), and a value of the wrong kind.
std::vector<GivenFlag> flags_of(const ConfigValue& root, const CommandLine& line,
                                const std::string& source);

/// Reads the flags of a file whose name ends in .json or .toml. Throws kUsage, also if the file
/// cannot be read.
std::vector<GivenFlag> read_config_file(const std::string& path, const CommandLine& line);

}  // namespace paceline
