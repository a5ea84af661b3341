// Local response normalisation of rows of channels in float32, vectorised for the machine that runs
// it.
#pragma once

#include <cstdint>

namespace paceline {

struct ResponseNormNumbers {
  std::int64_t radius;
  float bias, alpha, beta;
};

/// Returns the floats of scratch memory that one thread needs.
std::int64_t response_norm_scratch(std::int64_t channels, std::int64_t radius);

/// Computes y (rows,channels) = x · (bias + alpha · Σ x²)^−beta, where the sum covers `radius`
/// channels on either side.
void response_norm_rows(const float* x, std::int64_t rows, std::int64_t channels,
                        const ResponseNormNumbers& numbers, float* scratch, float* y);
/// Computes the gradient by x from the gradient by y.
void response_norm_rows_grad(const float* dy, const float* x, std::int64_t rows,
                             std::int64_t channels, const ResponseNormNumbers& numbers,
                             float* scratch, float* dx);

}  // namespace paceline
