// The difference between the flags of two workers that should agree on them.
#pragma once

#include <span>
#include <string>

namespace paceline {

/// "the chief's --accumulate is 1, that of worker:1 is 4", for the first line of agreed_flags()
/// that differs between those of `whose` and those of `other`: flags, names of the data, or their
/// number. Empty: all agree.
std::string flag_difference(std::span<const std::string> flags, const std::string& whose,
                            std::span<const std::string> other_flags, const std::string& other);

}  // namespace paceline
