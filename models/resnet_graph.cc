#include "models/resnet_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "paceline/ops.h"

namespace paceline::models {
namespace {

constexpr double kSlope = 0.1;  // of the leaky ReLUs
constexpr int kStages = 3;
constexpr BatchNormOptions kNorm{.momentum = 0.9, .epsilon = 1e-3};

class ResnetBuilder {
 public:
  ResnetBuilder(Graph& graph, bool training, std::vector<std::string>& decayed)
      : graph_(graph), norm_(kNorm), decayed_(decayed) {
    norm_.training = training;
  }

  // A 3×3 convolution: x (N,C,H,W) → (N,channels,H/stride,W/stride).
  Value conv(Value x, std::string_view name, std::int64_t channels, std::int64_t stride = 1) {
    const auto scope = graph_.scope(name);
    const double stddev = std::sqrt(2.0 / double(3 * 3 * channels));
    const Value weights =
        graph_.variable("w", {channels, x.shape()[1], 3, 3}, Initializer::normal(0, float(stddev)));
    decayed_.push_back(weights.name());
    return conv2d(x, weights, {.strides = {stride, stride}});
  }

  Value norm(Value x, std::string_view name) { return batch_norm(x, name, norm_); }
  Value activated(Value x, std::string_view name) { return leaky_relu(norm(x, name), kSlope); }

  // A unit: two convolutions beside a shortcut. In the first unit of the network, the shortcut
  // takes the activated x; in all others, x itself.
  Value unit(Value x, std::string_view name, std::int64_t channels, std::int64_t stride,
             bool first) {
    const auto scope = graph_.scope(name);
    const Value a = activated(x, "norm1");
    const Value y = conv(activated(conv(a, "conv1", channels, stride), "norm2"), "conv2", channels);
    return y + shortcut(first ? a : x, channels, stride);
  }

 private:
  // Returns x itself if it has `channels` channels. Otherwise returns the means of x over stride ×
  // stride pixels, with channels of zeros added on both sides.
  static Value shortcut(Value x, std::int64_t channels, std::int64_t stride) {
    const std::int64_t more = channels - x.shape()[1];
    if (more == 0) return x;
    const Value pooled = avg_pool2d(x, {.size = {stride, stride}, .strides = {stride, stride}});
    return pad(pooled, {0, more / 2, 0, 0}, {0, more - more / 2, 0, 0});
  }

  Graph& graph_;
  BatchNormOptions norm_;
  std::vector<std::string>& decayed_;
};

}  // namespace

ResnetGraph build_resnet(Graph& graph, std::int64_t units, std::int64_t batch, bool training,
                         std::int64_t classes) {
  ResnetGraph resnet{.images = graph.input("images", {batch, 3, kResnetPixels, kResnetPixels}),
                     .labels = graph.input("labels", {batch}, DType::kInt32)};
  ResnetBuilder build(graph, training, resnet.decayed);
  Value x = build.conv(resnet.images, "conv0", 16);
  for (int stage = 0; stage < kStages; ++stage) {
    for (std::int64_t unit = 1; unit <= units; ++unit) {
      const bool widens = stage > 0 && unit == 1;
      x = build.unit(x, fmt::format("stage{}/unit{}", stage + 1, unit), 16 << stage, widens ? 2 : 1,
                     stage == 0 && unit == 1);
    }
  }
  x = reduce_mean(relu(build.norm(x, "norm")), {2, 3});
  resnet.logits = graph.named("logits", dense(x, classes, "dense"));
  resnet.decayed.push_back(graph.find("dense/w").name());
  const Value losses = softmax_cross_entropy(resnet.logits, resnet.labels);
  resnet.loss = graph.named("cross_entropy", reduce_mean(losses));
  resnet.precision = graph.named("precision", top_k_accuracy(resnet.logits, resnet.labels, 1));
  return resnet;
}

namespace {

Schedule rates_of(const ResnetConfig& config) {
  if (!config.cosine_steps) {
    return Schedule::piecewise({40'000, 60'000, 80'000}, {1, 0.1, 0.01, 0.001});
  }
  const std::int64_t rising = std::max<std::int64_t>(1, *config.cosine_steps / 20);
  const std::int64_t falling = std::max<std::int64_t>(1, *config.cosine_steps - rising);
  return Schedule::warm_up(rising, Schedule::cosine(falling));
}

}  // namespace

Training resnet_minimize(const ResnetGraph& resnet, const ResnetConfig& config) {
  MinimizeOptions options;
  options.learning_rate = rates_of(config);
  for (const std::string& weights : resnet.decayed) {
    options.groups.push_back({.prefix = weights, .weight_decay = float(config.weight_decay)});
  }
  return minimize(
      resnet.loss,
      Momentum{.learning_rate = float(config.learning_rate), .momentum = float(config.momentum)},
      options);
}

std::map<std::string, std::string> resnet_modules(std::int64_t units) {
  std::map<std::string, std::string> modules;
  for (std::int64_t unit = 0; unit < kStages * units; ++unit) {
    modules[fmt::format("stage{}/unit{}", unit / units + 1, unit % units + 1)] =
        fmt::format("units.{}", unit);
  }
  return modules;
}

}  // namespace paceline::models
