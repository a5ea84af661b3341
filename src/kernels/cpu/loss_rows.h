// Vectorised passes over a row or a block, from which losses and norms are made (Highway, dynamic
// dispatch). Sums run in float over short blocks, and in double from block to block.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

/// Returns Σ exp(x[i] − shift), for x[i] ≤ shift.
double sum_exp(const float* x, float shift, std::int64_t n);
/// Computes y[i] = factor·exp(x[i] − shift), for x[i] ≤ shift. y may be x.
void scaled_exp(const float* x, float shift, float factor, float* y, std::int64_t n);
/// A block of exponentials exp(z − shift).
struct BlockOfExp {
  float shift;  // the largest z; the lowest float if that is −infinity
  double sum;
};
/// Computes y[i] = exp(z[i] − shift) with z[i] = x[i] + b[i], or x[i] if b is null. y may be x. n
/// is at least 1, and y must fit into the first-level cache. Prefetches n floats at `ahead`, which
/// the caller reads next; the address need not be valid.
BlockOfExp exp_of_block(const float* x, const float* b, float* y, const float* ahead,
                        std::int64_t n);
struct ScaledRow {
  float* y;
  float factor;
};
/// Computes y[i] = factor·y[i], then sums[i] += y[i], row after row.
void scale_and_add(std::span<const ScaledRow> rows, float* sums, std::int64_t n);
double sum_squares(const float* x, std::int64_t n);
/// Returns Σ a[i]·b[i].
double sum_products(const float* a, const float* b, std::int64_t n);
double sum_squared_differences(const float* a, const float* b, std::int64_t n);
/// Computes y[i] = factor·(a[i] − b[i]). y may be a or b.
void scaled_difference(const float* a, const float* b, float factor, float* y, std::int64_t n);

}  // namespace paceline
