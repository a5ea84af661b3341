// cifar10: a small convolutional network on images of 24 × 24 pixels (TensorFlow issue 6520).
#pragma once

#include "models/model.h"

namespace paceline::models {

const Model& cifar10_model();

}  // namespace paceline::models
