// Checks for the readers of flags. All throw kUsage that names the flags.
#pragma once

#include <string>

#include "cli/flags/command_line.h"
#include "run/usage_errors.h"

namespace paceline {

/// Refuses `flag` without `other`.
void check_together(const FlagValues& values, const std::string& flag, const std::string& other,
                    const std::string& why);
/// Refuses both flags together.
void check_apart(const FlagValues& values, const std::string& flag, const std::string& other,
                 const std::string& why);

}  // namespace paceline
