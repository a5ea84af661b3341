// Finds the source of a repeated element.
#pragma once

#include <cstdint>

#include "paceline/tensor.h"

namespace paceline {

/// Returns the position in an operand of shape `from` whose element is at position `i` after
/// broadcasting to `to`.
inline std::int64_t broadcast_index(std::int64_t i, const Shape& to, const Shape& from) {
  std::int64_t index = 0, stride = 1;
  for (int d = 1; d <= from.rank(); ++d) {
    if (from[-d] != 1) index += i % to[-d] * stride;
    stride *= from[-d];
    i /= to[-d];
  }
  return index;
}

}  // namespace paceline
