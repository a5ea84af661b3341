// ResNet with pre-activation for CIFAR-10 (He et al., arXiv 1603.05027) as a graph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "paceline/graph.h"
#include "paceline/minimize.h"

namespace paceline::models {

struct ResnetConfig {
  std::int64_t batch = 128;
  std::int64_t units = 18;  // of each of the three stages
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0.0002;
  /// The number of global steps in which the rate rises for a twentieth of them, then falls to 0 as
  /// half a cosine. Empty: the rate falls at the steps of the report.
  std::optional<std::int64_t> cosine_steps = {};

  /// Layers with weights on the way from images to logits.
  std::int64_t depth() const { return 6 * units + 2; }
};

/// The values of the graph, for N images of 32 × 32 pixels.
struct ResnetGraph {
  Value images;                           // (N,3,32,32), standardised
  Value labels;                           // int32 (N)
  Value logits = {};                      // (N, classes)
  Value loss = {};                        // the mean cross-entropy, a scalar
  Value precision = {};                   // the share of images whose label has the largest logit
  std::vector<std::string> decayed = {};  // the names of the weights that decay
};

constexpr std::int64_t kResnetPixels = 32;  // height and width of an image
constexpr std::int64_t kResnetClasses = 10;

/// Builds the graph for batches of `batch` images. With `training`, batch normalisation has the
/// statistics of the batch, else the moving ones. Variables have the same names in all graphs of
/// one number of units.
ResnetGraph build_resnet(Graph& graph, std::int64_t units, std::int64_t batch, bool training,
                         std::int64_t classes = kResnetClasses);
/// Momentum on the cross-entropy and the weight decay of convolutions and the dense layer. The rate
/// falls to a tenth at steps 40,000, 60,000 and 80,000, or as ResnetConfig::cosine_steps says.
Training resnet_minimize(const ResnetGraph& resnet, const ResnetConfig& config);
/// Returns SessionOptions::modules: the units of all stages stand in one nn.Sequential.
std::map<std::string, std::string> resnet_modules(std::int64_t units);

}  // namespace paceline::models
