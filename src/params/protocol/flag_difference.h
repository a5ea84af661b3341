// The difference between the flags of two workers that should agree.
#pragma once

#include <span>
#include <string>

namespace paceline {

/// Returns the first difference between the agreed_flags() of the workers `whose` and `other`: "the
/// chief's --accumulate is 1, that of worker:1 is 4". The line that differs may be a flag, a name
/// of the data, or the number of these names. Returns an empty text when the workers agree on all
/// lines.
std::string flag_difference(std::span<const std::string> flags, const std::string& whose,
                            std::span<const std::string> other_flags, const std::string& other);

}  // namespace paceline
