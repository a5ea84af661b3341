// NumPy's broadcasting: dimensions are matched from the last one; a dimension that is missing or
// has size 1 repeats.
#pragma once

#include <optional>

#include "paceline/graph.h"

namespace paceline {

/// Returns the shape to which both shapes are broadcast; nothing if they do not fit.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// Returns the gradient of a value of `shape` that was broadcast: `gradient`, summed over the
/// repeated dimensions.
Value sum_to_shape(Value gradient, const Shape& shape);

}  // namespace paceline
