// Numbers and counts as people read them.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/grouped_digits.h"

namespace paceline {

/// Returns the number to print: a NaN loses its sign, so that it is not printed as "-nan".
inline double printed(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

/// Returns a number with at most `digits` digits, or with all digits before its decimal point if
/// these are more: "1,235", "98.77", "40". Has no exponent for numbers from 0.0001 to 10^18.
inline std::string rounded(double number, int digits = 4) {
  const double least = 1000 - 0.5 * std::pow(10.0, 3 - digits);  // rounds to 1,000
  const bool large = std::abs(number) >= least && std::abs(number) < 1e18;
  return large ? grouped_digits(std::llround(number))
               : fmt::format("{:.{}g}", printed(number), digits);
}

/// Returns the ratio of two speeds as text: "1.94", "0.009", "112".
inline std::string times_of(double ratio) {
  if (ratio >= 99.5) return rounded(ratio, 3);
  return fmt::format("{:.{}f}", printed(ratio), ratio < 0.095 ? 3 : 2);
}

/// "1 step", "3,000 steps".
inline std::string counted(std::int64_t count, std::string_view thing) {
  return grouped_digits(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

}  // namespace paceline
