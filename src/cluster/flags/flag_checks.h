// Checks of flags, for their readers. All throw kUsage that names the flags.
#pragma once

#include <string>

#include "cluster/flags/command_line.h"
#include "paceline/error.h"

namespace paceline {

[[noreturn]] void refuse_flags(const std::string& message);

/// Refuses `flag` without `other`.
void check_together(const FlagValues& values, const std::string& flag, const std::string& other,
                    const std::string& why);
/// Refuses both flags together.
void check_apart(const FlagValues& values, const std::string& flag, const std::string& other,
                 const std::string& why);

/// Calls `read`, which reads the value of a flag, and adds the flag's name to its errors.
template <typename Read>
auto read_flag(const std::string& flag, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    refuse_flags(flag + ": " + error.what());
  }
}

}  // namespace paceline
