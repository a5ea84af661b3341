// Images made up in memory, from which a model can learn: each class has waves of its own.
#pragma once

#include <cstdint>

#include "paceline/tensor.h"

namespace paceline::models {

struct LabelledImages {
  Tensor images;  // float32 (count,3,pixels,pixels), mean 0 and variance about 1
  Tensor labels;  // int32 (count), 0, 1, …, classes − 1, 0, …
};

/// The images are a function of the arguments alone.
LabelledImages generate_images(std::int64_t count, std::int64_t pixels, std::int64_t classes,
                               std::uint64_t seed);

}  // namespace paceline::models
