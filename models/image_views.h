// Several views of each image, over which an evaluation takes the mean.
#pragma once

#include <cstdint>

#include "paceline/graph.h"

namespace paceline::models {

constexpr std::int64_t kImageViews = 6;

/// Images (N,C,H,W) → (6·N,C,H,W): as they are, shifted by one pixel down and right, and up and
/// left, with a reflection at the margin; then each of the three mirrored from left to right.
Value image_views(Value images);
/// Logits of the views (6·N,classes) → (N,classes): half the weight is that of views without a
/// shift.
Value mean_of_views(Value logits);

}  // namespace paceline::models
