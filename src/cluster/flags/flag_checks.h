// What readers of flags check of them. All throw kUsage that names the flags.
#pragma once

#include <string>

#include "cluster/flags/command_line.h"
#include "paceline/error.h"

namespace paceline {

[[noreturn]] void refuse_flags(const std::string& message);

/// Both flags, or not the first.
void check_together(const FlagValues& values, const std::string& flag, const std::string& other,
                    const std::string& why);
/// Not both.
void check_apart(const FlagValues& values, const std::string& flag, const std::string& other,
                 const std::string& why);

/// What is wrong with the text of a flag is found by who reads it; the flag's name is added here.
template <typename Read>
auto read_flag(const std::string& flag, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    refuse_flags(flag + ": " + error.what());
  }
}

}  // namespace paceline
