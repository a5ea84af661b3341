// Numbers and counts as people read them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/grouped_digits.h"

namespace paceline {

/// The number to print: a NaN has no sign there, so that none is printed as "-nan".
inline double printed(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

/// "1 step", "3,000 steps".
inline std::string counted(std::int64_t count, std::string_view thing) {
  return grouped_digits(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

}  // namespace paceline
