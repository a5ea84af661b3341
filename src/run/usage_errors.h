// Errors of usage, which name a flag.
#pragma once

#include <string>

#include "paceline/error.h"

namespace paceline {

/// Throws kUsage such as "--threads 0: must be a whole number from 1 to 1024".
[[noreturn]] void refuse_flag(const std::string& flag, const std::string& value,
                              const std::string& why);
/// Throws kUsage with this message, which names the flags.
[[noreturn]] void refuse_flags(const std::string& message);

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
