// The cifar10 network (TensorFlow issue 6520) as a graph: two convolutions, three dense layers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/image_hooks.h"
#include "paceline/graph.h"
#include "paceline/minimize.h"

namespace paceline::models {

struct Cifar10Config {
  std::int64_t batch = 128;
  double learning_rate = 0.1;
  double average_decay = 0.9999;
  std::int64_t examples = 50'000;  // the number in an epoch
  std::int64_t rate_epochs = 350;  // the epochs until the learning rate falls to a tenth

  /// The number of steps until the learning rate falls to a tenth.
  std::int64_t rate_steps() const { return rate_epochs * examples / batch; }
};

/// The values of the graph, for N images of 24 × 24 pixels.
struct Cifar10Graph {
  Value images;       // (N,3,24,24), standardised
  Value labels;       // int32 (N)
  Value logits = {};  // (N, classes)
  Value loss = {};    // the mean cross-entropy, a scalar
};

constexpr std::int64_t kCifar10Pixels = 24;  // height and width of an image
constexpr std::int64_t kCifar10Classes = 10;

/// Builds the graph for batches of `batch` images. Variables have the same names in all graphs.
Cifar10Graph build_cifar10(Graph& graph, std::int64_t batch,
                           std::int64_t classes = kCifar10Classes);
/// The terms of the loss: the cross-entropy, and a term for each layer with weight decay.
std::vector<LossTerm> cifar10_loss_terms(const Cifar10Graph& cifar10);
/// Minimizes the cross-entropy, with weight decay in the first two dense layers, by SGD whose
/// learning rate falls in steps. Each variable has a moving average.
Training cifar10_minimize(const Cifar10Graph& cifar10, const Cifar10Config& config);
/// Returns SessionOptions::modules: all dense layers are in one nn.Sequential.
std::map<std::string, std::string> cifar10_modules();

}  // namespace paceline::models
