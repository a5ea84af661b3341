// The model resnet: ResNet-32, ResNet-110 and others of this family on images of 32 × 32 pixels
// (TensorFlow models issue 9399).
#pragma once

#include <cstdint>
#include <optional>

#include "models/model.h"
#include "models/resnet_graph.h"

namespace paceline::models {

/// The configuration that settings of resnet_model() describe, for a run of `steps` steps. Throws
/// kUsage when --depth is not 2 more than a multiple of 6, when both --depth and --units are given,
/// or when --rates cosine is given and `steps` is empty.
ResnetConfig resnet_config(const Settings& settings, std::optional<std::int64_t> steps);

const Model& resnet_model();

}  // namespace paceline::models
