// The rows of a tensor.
#pragma once

#include <cstdint>

#include "paceline/shape.h"

namespace paceline {

/// Dimension 0; 1 of a scalar.
inline std::int64_t row_count(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

}  // namespace paceline
