// Turns the public options of windows into the attributes of nodes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "paceline/ops.h"

namespace paceline {

/// The attribute "pads" (top, left, bottom, right) of windows of `reach` elements over the last two
/// dimensions of x; zeros where x or the numbers cannot be, which the op then says.
std::vector<std::int64_t> pads_of(const Padding& padding, const Shape& x,
                                  std::array<std::int64_t, 2> reach,
                                  std::array<std::int64_t, 2> strides);
/// The numbers as an attribute.
inline std::vector<std::int64_t> attribute_of(std::array<std::int64_t, 2> pair) {
  return {pair.begin(), pair.end()};
}

}  // namespace paceline
