// Vectorised passes over a row or a block that losses and norms are made of (Highway, dynamic
// dispatch). Sums run in float over short blocks and in double from block to block.
#pragma once

#include <cstdint>

namespace paceline {

/// Σ exp(x[i] − shift), for a shift that is not much smaller than the largest.
double sum_exp(const float* x, float shift, std::int64_t n);
/// y[i] = factor·exp(x[i] − shift). y may be x.
void scaled_exp(const float* x, float shift, float factor, float* y, std::int64_t n);
/// y[i] = x[i] + b[i], or x[i] where b is null; returns the largest. y may be x; n at least 1.
float add_and_max(const float* x, const float* b, float* y, std::int64_t n);
/// y[i] = exp(y[i] − shift); returns their sum.
double exp_and_sum(float* y, float shift, std::int64_t n);
/// y[i] = factor·y[i], sums[i] += y[i].
void scale_and_add(float* y, float factor, float* sums, std::int64_t n);
double sum_squares(const float* x, std::int64_t n);
double sum_squared_differences(const float* a, const float* b, std::int64_t n);
/// y[i] = factor·(a[i] − b[i]). y may be a or b.
void scaled_difference(const float* a, const float* b, float factor, float* y, std::int64_t n);

}  // namespace paceline
