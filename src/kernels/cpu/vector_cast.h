// The 16-bit floats from and to float32, vectorised for the machine that runs them. Bit for bit
// what BFloat16 and Float16 convert to: rounded to nearest even, subnormals kept, NaN stays NaN.
#pragma once

#include <cstdint>

#include "paceline/tensor.h"

namespace paceline {

/// y[i] = x[i] for i in [0, n). x and y may overlap where no element of y is written before those
/// of x that lie there were read, from the first to the last.
void vector_cast(const float* x, BFloat16* y, std::int64_t n);
void vector_cast(const float* x, Float16* y, std::int64_t n);
void vector_cast(const BFloat16* x, float* y, std::int64_t n);
void vector_cast(const Float16* x, float* y, std::int64_t n);
/// y[i] = x[i] + errors[i], rounded; errors[i] = what was left out, 0 where that is not finite.
void vector_cast_with_errors(const float* x, float* errors, BFloat16* y, std::int64_t n);

}  // namespace paceline
