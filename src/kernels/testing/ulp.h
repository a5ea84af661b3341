// Errors of float32 functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline {

/// Returns |y − exact| in units in the last place of a float32 of that size. If one of them is NaN
/// or infinite, returns 0 if the other is the same, else infinity.
inline double error_in_ulp(float y, double exact) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  const auto nearest = float(exact);
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) == std::isnan(y) ? 0 : kWrong;
  if (std::isinf(nearest) || std::isinf(y)) return y == nearest ? 0 : kWrong;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(double(y) - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

}  // namespace paceline
