// Norms and differences of the values in checkpoints, for `paceline inspect`.
#pragma once

#include <cstddef>

#include "checkpoint/checkpoint_reader.h"

namespace paceline {

/// The square root of the sum of squares, in double; `array` 0 is the value, 1 + s slot s. Reads a
/// few MB at a time.
double norm_of(const CheckpointReader& checkpoint, const SavedVariable& variable,
               std::size_t array);

struct Difference {
  double largest = 0, mean = 0;  // of |a - b|; NaN when only one of the two is NaN somewhere
};

/// The difference between the values of a variable that has the same shape in both checkpoints.
Difference difference_of(const CheckpointReader& a, const CheckpointReader& b,
                         const SavedVariable& in_a, const SavedVariable& in_b);

}  // namespace paceline
