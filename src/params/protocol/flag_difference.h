// The difference between the flags of two workers that should agree.
#pragma once

#include <span>
#include <string>

namespace paceline {

/// Returns "the chief's --accumulate is 1, that of worker:1 is 4", for the first line of
/// agreed_flags() in which `whose` and `other` differ. It may be a flag, a name of the data, or
/// their number. Empty: they agree on all.
std::string flag_difference(std::span<const std::string> flags, const std::string& whose,
                            std::span<const std::string> other_flags, const std::string& other);

}  // namespace paceline
