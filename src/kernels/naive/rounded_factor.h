#pragma once

#include "paceline/tensor.h"

namespace paceline {

/// Returns a factor of a product, whose operands may be rounded to bfloat16.
inline double rounded_factor(double x, bool rounds) {
  return rounds ? double(static_cast<float>(BFloat16(float(x)))) : x;
}

}  // namespace paceline
