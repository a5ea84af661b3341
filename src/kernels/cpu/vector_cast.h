// Converts 16-bit floats from and to float32, vectorised for the machine that runs it. Results
// equal those of BFloat16 and Float16, bit for bit: rounded to nearest even, subnormals kept, NaN
// stays NaN.
#pragma once

#include <cstdint>

#include "paceline/tensor.h"

namespace paceline {

/// Converts y[i] = x[i] for i in [0, n), from the first to the last. x and y may overlap if no
/// element of y is written over an element of x that is still to be read.
void vector_cast(const float* x, BFloat16* y, std::int64_t n);
void vector_cast(const float* x, Float16* y, std::int64_t n);
void vector_cast(const BFloat16* x, float* y, std::int64_t n);
void vector_cast(const Float16* x, float* y, std::int64_t n);
/// Computes y[i] = x[i] + errors[i], rounded; then errors[i] is the rounding error, or 0 if that is
/// not finite.
void vector_cast_with_errors(const float* x, float* errors, BFloat16* y, std::int64_t n);

}  // namespace paceline
