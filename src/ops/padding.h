// Turns the public options of windows into the attributes of nodes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "paceline/ops.h"

namespace paceline {

/// Returns the attribute "pads" (top, left, bottom, right) for windows of `reach` elements over the
/// last two dimensions of x. For an x or numbers that are not allowed, returns zeros, so that the
/// op reports the fault.
std::vector<std::int64_t> pads_of(const Padding& padding, const Shape& x,
                                  std::array<std::int64_t, 2> reach,
                                  std::array<std::int64_t, 2> strides);
/// Returns two numbers as the value of an attribute.
inline std::vector<std::int64_t> attribute_of(std::array<std::int64_t, 2> pair) {
  return {pair.begin(), pair.end()};
}

}  // namespace paceline
