// Passes over float32 matrices (rows,channels) with separate numbers for each channel, for batch
// normalisation. They are vectorised for the machine that runs them.
#pragma once

#include <cstdint>

namespace paceline {

/// The numbers of each channel for z = (x − mean)·scale + offset, and for y, which is z, or slope·z
/// where z < 0.
struct ChannelNorm {
  const float *mean, *scale, *offset;
  float slope = 1;
};

/// Adds Σ (x − center) and Σ (x − center)² of each channel to `sums` and `squares`.
void sum_channels(const float* x, std::int64_t rows, std::int64_t channels, const float* center,
                  double* sums, double* squares);
/// Computes y of each element; y may be x.
void normalize_channels(const float* x, std::int64_t rows, std::int64_t channels,
                        const ChannelNorm& norm, float* y);

/// Adds Σ dz and Σ dz·(x − mean) of each channel to `sums` and `products`; dz is dy, or slope·dy
/// where z < 0 (for relu, with slope 0, also where z = 0).
void sum_channel_gradients(const float* dy, const float* x, std::int64_t rows,
                           std::int64_t channels, const ChannelNorm& norm, double* sums,
                           double* products);
/// The numbers of each channel for dx = of_gradient·dz + of_distance·(x − mean) + constant.
struct ChannelGradient {
  const float *of_gradient, *of_distance, *constant;
};
/// Computes dx of each element; dx may be dy or x.
void channel_gradients(const float* dy, const float* x, std::int64_t rows, std::int64_t channels,
                       const ChannelNorm& norm, const ChannelGradient& gradient, float* dx);

}  // namespace paceline
