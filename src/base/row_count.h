// The rows of a tensor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "paceline/tensor.h"

namespace paceline {

/// Dimension 0; 1 of a scalar.
inline std::int64_t row_count(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

/// Returns the shape with `rows` as its first dimension; the shape of a scalar is returned
/// unchanged.
inline Shape with_rows(const Shape& shape, std::int64_t rows) {
  if (shape.rank() == 0) return shape;
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = rows;
  return Shape(std::span<const std::int64_t>(dims));
}

}  // namespace paceline
