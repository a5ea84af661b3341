// The difference between the flags of two workers that should agree on them.
#pragma once

#include <string>

namespace paceline {

/// "the chief's --accumulate is 1, that of worker:1 is 4", for the first flag that differs between
/// two texts of agreed_flags.h, of `whose` and of `other`. Empty: the texts agree.
std::string flag_difference(const std::string& flags, const std::string& whose,
                            const std::string& other_flags, const std::string& other);

}  // namespace paceline
