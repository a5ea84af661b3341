// Pools of one image (height,width,channels) in float32, vectorised over channels for the machine
// that runs them.
#pragma once

#include <cstdint>

#include "ops/image.h"

namespace paceline {

/// The windows of a pool over an image of h × w pixels, and the pooled image's extents.
struct PoolShape {
  Window2d window;
  std::int64_t h = 0, w = 0;
  std::int64_t pooled_h = 0, pooled_w = 0;
  std::int64_t channels = 0;
};

/// Computes y, and the places of the maxima in their windows, from x.
void max_pool_image(const PoolShape& shape, const float* x, float* y, std::uint8_t* places);
/// Computes the pool of relu(x); the place is kNoPlace if a window has no element above zero.
void relu_max_pool_image(const PoolShape& shape, const float* x, float* y, std::uint8_t* places);
/// Computes dx from dy and the places.
void max_pool_image_grad(const PoolShape& shape, const float* dy, const std::uint8_t* places,
                         float* dx);
/// Computes y from x; means cover the elements that lie in the image.
void avg_pool_image(const PoolShape& shape, const float* x, float* y);
/// Computes dx from dy.
void avg_pool_image_grad(const PoolShape& shape, const float* dy, float* dx);

}  // namespace paceline
