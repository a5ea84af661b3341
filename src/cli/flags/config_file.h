// Flags that are given in a file: `--config job.toml`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"
#include "run/config/config_value.h"

namespace paceline {

/// Every key is a flag of `line` without its dashes ("worker-hosts" or "worker_hosts"). A value is
/// a text or a number; true or false of a switch; a list where the flag takes several; `cluster`
/// may be a table of lists {ps, worker}, `set` a table of hyper-parameters. Throws kUsage that
/// begins with file, line and column: what cannot be read, an unknown key (with the nearest), a
/// value of the wrong kind.
std::vector<GivenFlag> flags_of(const ConfigValue& root, const CommandLine& line,
                                const std::string& source);

/// Reads the flags of a file whose name ends in .json or .toml. Throws kUsage also when it cannot
/// be read.
std::vector<GivenFlag> read_config_file(const std::string& path, const CommandLine& line);

}  // namespace paceline
