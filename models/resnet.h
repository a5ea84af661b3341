// resnet: ResNet-32, ResNet-110 and others of their kind on images of 32 × 32 pixels (TensorFlow
// models issue 9399).
#pragma once

#include "models/model.h"
#include "models/resnet_graph.h"

namespace paceline::models {

/// The configuration that settings of resnet_model() describe. Throws kUsage when --depth is not 2
/// more than a multiple of 6, or when --units is given too.
ResnetConfig resnet_config(const Settings& settings);

const Model& resnet_model();

}  // namespace paceline::models
