// Reads the flags that say which links are encrypted, and how this task proves that it belongs to
// the job.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"

namespace paceline {

/// Returns these flags, under the heading `group` of --help.
std::vector<Flag> security_flags(const std::string& group);
/// Throws kUsage that names the flag.
Security read_security(const FlagValues& values);

}  // namespace paceline
