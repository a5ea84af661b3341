// Vectorised passes over a row or a block that losses and norms are made of (Highway, dynamic
// dispatch). Sums run in float over short blocks and in double from block to block.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

/// Σ exp(x[i] − shift), for x[i] ≤ shift.
double sum_exp(const float* x, float shift, std::int64_t n);
/// y[i] = factor·exp(x[i] − shift), for x[i] ≤ shift. y may be x.
void scaled_exp(const float* x, float shift, float factor, float* y, std::int64_t n);
/// Of a block of exponentials exp(z − shift).
struct BlockOfExp {
  float shift;  // the largest z; the lowest float where that is −infinity
  double sum;
};
/// y[i] = exp(z[i] − shift), z[i] = x[i] + b[i], or x[i] where b is null. y may be x; n at least 1,
/// and no more than the first-level cache holds. `ahead`: what is soon read; need not exist.
BlockOfExp exp_of_block(const float* x, const float* b, float* y, const float* ahead,
                        std::int64_t n);
struct ScaledRow {
  float* y;
  float factor;
};
/// y[i] = factor·y[i] and then sums[i] += y[i], row after row.
void scale_and_add(std::span<const ScaledRow> rows, float* sums, std::int64_t n);
double sum_squares(const float* x, std::int64_t n);
/// Σ a[i]·b[i].
double sum_products(const float* a, const float* b, std::int64_t n);
double sum_squared_differences(const float* a, const float* b, std::int64_t n);
/// y[i] = factor·(a[i] − b[i]). y may be a or b.
void scaled_difference(const float* a, const float* b, float factor, float* y, std::int64_t n);

}  // namespace paceline
