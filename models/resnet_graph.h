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
  std::int64_t units = 18;  // the number in each of the three stages
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0.0002;
  /// The number of global steps of training: for a twentieth of them the learning rate rises, then
  /// it falls to 0 as half a cosine. Empty: the learning rate falls to a tenth at fixed steps
  /// (resnet_minimize).
  std::optional<std::int64_t> cosine_steps = {};

  /// The number of layers with weights between images and logits.
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

/// Builds the graph for batches of `batch` images. With `training`, batch norm takes the statistics
/// of the batch, else the moving statistics. Variables have the same names in all graphs with the
/// same number of units.
ResnetGraph build_resnet(Graph& graph, std::int64_t units, std::int64_t batch, bool training,
                         std::int64_t classes = kResnetClasses);
/// Minimizes the cross-entropy by Momentum, with weight decay of the weights of convolutions and of
/// the dense layer. The learning rate falls to a tenth at steps 40,000, 60,000 and 80,000, or as
/// ResnetConfig::cosine_steps says.
Training resnet_minimize(const ResnetGraph& resnet, const ResnetConfig& config);
/// Returns SessionOptions::modules: the units of all stages are in one nn.Sequential.
std::map<std::string, std::string> resnet_modules(std::int64_t units);

}  // namespace paceline::models
