// The 16-bit floats from and to float32, vectorised for the machine that runs them. Bit for bit
// what BFloat16 and Float16 convert to: rounded to nearest even, subnormals kept, NaN stays NaN.
#pragma once

#include <cstdint>

#include "paceline/dtype.h"

namespace paceline {

/// y[i] = x[i] for i in [0, n); x and y do not overlap.
void vector_cast(const float* x, BFloat16* y, std::int64_t n);
void vector_cast(const float* x, Float16* y, std::int64_t n);
void vector_cast(const BFloat16* x, float* y, std::int64_t n);
void vector_cast(const Float16* x, float* y, std::int64_t n);

}  // namespace paceline
