// Reverse-mode differentiation on the graph: adds nodes that compute the gradients.
#pragma once

#include <span>
#include <vector>

#include "paceline/op.h"

namespace paceline {

/// Returns the derivatives of `loss`, a float scalar, by each of `by`. A gradient that is zero
/// everywhere is returned empty. Rows of several look-ups into one variable are concatenated; where
/// a dense and a sparse gradient meet, or rows reach a node that is not a variable, the rows are
/// scattered into a dense gradient.
std::vector<Gradient> differentiate(Value loss, std::span<const Value> by);

}  // namespace paceline
