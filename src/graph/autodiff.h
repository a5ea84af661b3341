// Reverse-mode differentiation on the graph: adds nodes that compute the gradients.
#pragma once

#include <span>
#include <vector>

#include "paceline/op.h"

namespace paceline {

/// Returns the derivatives of `loss`, a float32 or float64 scalar, by each of `by`. A gradient is
/// empty if `loss` does not depend on the value, or only through ops whose gradient is zero. A
/// variable that is read only by look-ups of rows has a sparse gradient, in which the rows of all
/// look-ups are concatenated. If a value is no variable, or has a dense gradient besides, the rows
/// are scattered into a dense gradient.
std::vector<Gradient> differentiate(Value loss, std::span<const Value> by);

}  // namespace paceline
