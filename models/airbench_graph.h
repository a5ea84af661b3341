// The network and the training of airbench94, which reaches 94% on CIFAR-10 in 8 epochs (Jordan,
// arXiv 2404.00498, in its later form with Muon, github.com/KellerJordan/cifar10-airbench).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "paceline/graph.h"
#include "paceline/minimize.h"
#include "paceline/tensor.h"

namespace paceline::models {

/// The number of views of each image over which an evaluation takes the mean.
constexpr std::int64_t kImageViews = 6;

/// Images (N,C,H,W) → (6·N,C,H,W): first all images as they are, then shifted by one pixel down and
/// right, then up and left, where the margin is reflected; then the same three views mirrored from
/// left to right.
Value image_views(Value images);
/// The weighted mean of the logits of all views of an image: (6·N,classes) → (N,classes). The two
/// views without a shift have half of the weight together.
Value mean_of_views(Value logits);

struct AirbenchConfig {
  std::int64_t batch = 2000;
  std::int64_t classes = 10;
  std::array<std::int64_t, 3> widths = {64, 256, 256};  // channels of the three groups
  std::int64_t steps = 200;                             // in which learning rates fall to 0
  std::uint64_t seed = 1;                               // of the initial values
  Tensor whitening = {};                                // the first filters; without any: zeros

  /// The number of steps in which the learning rate of the first layer's biases falls to 0.
  std::int64_t whitening_steps() const { return (steps * 3 + 7) / 8; }
};

constexpr std::int64_t kAirbenchPixels = 32;  // height and width of an image

struct AirbenchGraph {
  Value images;       // (N,3,32,32), each channel standardised over the set
  Value labels;       // int32 (N)
  Value logits = {};  // (N, classes)
  Value loss = {};    // the mean cross-entropy with smoothed labels, a scalar
};

/// Builds the graph that is trained.
AirbenchGraph build_airbench(Graph& graph, const AirbenchConfig& config);
/// Adds the logits of an evaluation: the weighted mean over the six views of each image
/// (image_views).
Value airbench_views(Value images, const AirbenchConfig& config);
/// Builds a graph with the logits of airbench_views alone.
AirbenchGraph build_airbench_views(Graph& graph, const AirbenchConfig& config);
/// Trains all convolutions but the first by Muon; the filters of the first convolution do not
/// change. Biases, the offsets of batch norm and the last layer are trained by SGD with Nesterov's
/// momentum. All learning rates fall linearly to 0.
Training airbench_minimize(const AirbenchGraph& airbench, const AirbenchConfig& config);
/// Returns SessionOptions::modules: all groups are in one nn.Sequential.
std::map<std::string, std::string> airbench_modules(const AirbenchConfig& config);

}  // namespace paceline::models
