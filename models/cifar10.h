// The model cifar10: a small convolutional network on images of 24 × 24 pixels (TensorFlow issue
// 6520) or, with the recipe `fast`, airbench94 on 32 × 32 pixels.
#pragma once

#include "models/model.h"

namespace paceline::models {

const Model& cifar10_model();

}  // namespace paceline::models
