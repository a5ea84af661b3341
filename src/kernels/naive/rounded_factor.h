#pragma once

#include "paceline/tensor.h"

namespace paceline {

/// Returns x, a factor of a product, rounded to bfloat16 if `rounds` is true.
inline double rounded_factor(double x, bool rounds) {
  return rounds ? double(static_cast<float>(BFloat16(float(x)))) : x;
}

}  // namespace paceline
