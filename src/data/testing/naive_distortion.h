// Distortions as their definition says it, value by value in float64.
#pragma once

#include <vector>

#include "paceline/data.h"

namespace paceline {

/// The numbers that are random.
struct NaiveDraws {
  std::int64_t top = 0, left = 0;  // of the part, in the image with its zeros
  bool mirrored = false;
  double brightness = 0, contrast = 1;
};

/// The values in the layout of the distortion.
std::vector<double> naive_distortion(const Distortion& distortion, const Example& example,
                                     const NaiveDraws& draws);

}  // namespace paceline
