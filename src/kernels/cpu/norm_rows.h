// Vectorised passes over a row, from which layer norm is made (Highway, dynamic dispatch). Sums run
// in float over short blocks, and in double from block to block.
#pragma once

#include <cstdint>

namespace paceline {

/// The two numbers that normalise a row: x̂ = (x − mean)·scale.
struct RowScale {
  float mean, scale;
};

/// Returns Σ (x[i] − center)².
double sum_squared_distances(const float* x, float center, std::int64_t n);
/// Computes y[i] = x̂[i]·gains[i] + offsets[i]. y may be x.
void normalize_row(const float* x, RowScale row, const float* gains, const float* offsets, float* y,
                   std::int64_t n);

/// The sums Σ g and Σ g·x̂ with g = gains·dy, or their means.
struct NormSums {
  double gradient, product;
};
/// Returns a row's sums; also gain_sums[i] += dy[i]·x̂[i], offset_sums[i] += dy[i].
NormSums norm_sums(const float* dy, const float* x, const float* gains, RowScale row,
                   float* gain_sums, float* offset_sums, std::int64_t n);
/// Computes dx[i] = scale·(g[i] − means.gradient − x̂[i]·means.product). dx may be dy or x.
void norm_gradient(const float* dy, const float* x, const float* gains, RowScale row,
                   NormSums means, float* dx, std::int64_t n);

}  // namespace paceline
