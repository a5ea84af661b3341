#include "models/cifar10_graph.h"

#include <fmt/format.h>

#include <string_view>

#include "paceline/ops.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kFilters = 64, kFilterSize = 5;
constexpr float kDenseDecay = 0.004f;
constexpr const char* kDecayedLayers[] = {"dense1", "dense2"};

Initializer truncated(double stddev) { return Initializer::truncated_normal(0, float(stddev)); }

// A 5×5 convolution and ReLU: x (N,C,H,W) → (N,64,H,W).
Value conv_layer(Value x, std::string_view name, float bias) {
  return relu(
      conv2d(x, kFilters, kFilterSize, name, {}, truncated(0.05), Initializer::constant(bias)));
}

Value halved(Value x) { return max_pool2d(x, {.size = {3, 3}, .padding = Padding::same()}); }

Value normalized(Value x) {
  return local_response_norm(x, {.radius = 4, .bias = 1, .alpha = 0.001 / 9, .beta = 0.75});
}

}  // namespace

Cifar10Graph build_cifar10(Graph& graph, std::int64_t batch, std::int64_t classes) {
  Cifar10Graph cifar10{.images = graph.input("images", {batch, 3, kCifar10Pixels, kCifar10Pixels}),
                       .labels = graph.input("labels", {batch}, DType::kInt32)};
  Value x = normalized(halved(conv_layer(cifar10.images, "conv1", 0)));
  x = halved(normalized(conv_layer(x, "conv2", 0.1f)));
  x = reshape(x, {batch, -1});
  const Initializer tenth = Initializer::constant(0.1f);
  x = relu(dense(x, 384, "dense1", truncated(0.04), tenth));
  x = relu(dense(x, 192, "dense2", truncated(0.04), tenth));
  cifar10.logits = graph.named("logits", dense(x, classes, "dense3", truncated(1.0 / 192)));
  const Value losses = softmax_cross_entropy(cifar10.logits, cifar10.labels);
  cifar10.loss = graph.named("cross_entropy", reduce_mean(losses));
  return cifar10;
}

// The terms of weight decay are the same expressions that minimize() adds to the loss, so a step
// computes them only once.
std::vector<LossTerm> cifar10_loss_terms(const Cifar10Graph& cifar10) {
  std::vector<LossTerm> terms = {{"cross-entropy", cifar10.loss}};
  Graph& graph = cifar10.loss.graph();
  for (const char* layer : kDecayedLayers) {
    const Value weights = graph.find(fmt::format("{}/w", layer));
    terms.push_back({fmt::format("{} weight decay", layer),
                     scale(reduce_sum(square(weights)), 0.5 * double(kDenseDecay))});
  }
  return terms;
}

Training cifar10_minimize(const Cifar10Graph& cifar10, const Cifar10Config& config) {
  MinimizeOptions options;
  options.learning_rate = Schedule::staircase(0.1, config.rate_steps());
  options.average_decay = float(config.average_decay);
  options.average_ramp = true;
  for (const char* layer : kDecayedLayers) {
    options.groups.push_back({.prefix = fmt::format("{}/w", layer), .weight_decay = kDenseDecay});
  }
  return minimize(cifar10.loss, Sgd{.learning_rate = float(config.learning_rate)}, options);
}

std::map<std::string, std::string> cifar10_modules() {
  return {{"dense1", "dense.0"}, {"dense2", "dense.2"}, {"dense3", "dense.4"}};
}

}  // namespace paceline::models
