// Clipping by the norm of contributions that a store has summed itself.
#pragma once

#include <span>

namespace paceline {

/// Returns the norm of all contributions; `squares` has the sum of squares of each. The norm is
/// rounded to float32, as a plan's norm is.
double norm_of(std::span<const double> squares);
/// Returns the factor min(1, clip_norm / norm).
float clip_scale_of(double norm, float clip_norm);

}  // namespace paceline
