#include "models/airbench_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/whitening.h"
#include "paceline/ops.h"

namespace paceline::models {

// Views of images are made by products with matrices of zeros and ones.

namespace {

constexpr std::int64_t kShifts[] = {0, 1, -1};

// Returns the matrix M for which row i of M·x is row i − shift of x, reflected at the margin.
Tensor shifted_rows(std::int64_t count, std::int64_t shift) {
  Tensor matrix(DType::kFloat32, {count, count});
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t from = std::abs(i - shift);
    if (from >= count) from = 2 * (count - 1) - from;
    matrix.data<float>()[std::size_t(i * count + from)] = 1;
  }
  return matrix;
}

// Returns the matrix M for which column i of x·M is column i − shift of x, reflected at the margin.
// If `mirrored` is true, the columns of x·M come in reverse order.
Tensor shifted_columns(std::int64_t count, std::int64_t shift, bool mirrored) {
  const Tensor rows = shifted_rows(count, shift);
  Tensor matrix(DType::kFloat32, {count, count});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t column = mirrored ? count - 1 - i : i;
    for (std::int64_t k = 0; k < count; ++k) {
      matrix.data<float>()[std::size_t(k * count + column)] =
          rows.data<float>()[std::size_t(i * count + k)];
    }
  }
  return matrix;
}

}  // namespace

Value image_views(Value images) {
  Graph& graph = images.graph();
  const std::int64_t height = images.shape()[2], width = images.shape()[3];
  std::vector<Value> views;
  for (const bool mirrored : {false, true}) {
    for (const std::int64_t shift : kShifts) {
      const Value columns = graph.constant(shifted_columns(width, shift, mirrored));
      const Value rows = graph.constant(shifted_rows(height, shift));
      views.push_back(matmul(rows, matmul(images, columns)));
    }
  }
  return concat(views, 0);
}

Value mean_of_views(Value logits) {
  const std::int64_t images = logits.shape()[0] / kImageViews, classes = logits.shape()[1];
  const Value weights = logits.graph().constant(
      Tensor::of<float>({kImageViews, 1, 1}, {0.25f, 0.125f, 0.125f, 0.25f, 0.125f, 0.125f}));
  return reduce_sum(reshape(logits, {kImageViews, images, classes}) * weights, {0});
}

namespace {

constexpr double kSmoothing = 0.2, kMomentum = 0.85, kDecay = 2e-6;
// The recipe's learning rates are for the sum of the losses of a batch (see sgd()).
constexpr double kBiasRate = 0.053, kHeadRate = 0.67;
constexpr double kMuonRate = 0.24, kMuonMomentum = 0.6;

// Draws weights uniformly within ±1/√(values in a window), PyTorch's default. The first filters,
// one for each input channel, copy their channel.
Initializer partly_identity(const Shape& shape, std::uint64_t seed, const std::string& name) {
  const Tensor weights(DType::kFloat32, shape);
  const std::int64_t window = shape[2] * shape[3], channels = shape[1];
  const float bound = float(1 / std::sqrt(double(channels * window)));
  const auto values = weights.data<float>();
  Initializer::uniform(-bound, bound).fill(values, shape, seed, name);
  for (std::int64_t i = 0; i < std::min(shape[0], channels); ++i) {
    const auto filter =
        values.subspan(std::size_t(i * channels * window), std::size_t(channels * window));
    std::ranges::fill(filter, 0.0f);
    filter[std::size_t(i * window + window / 2)] = 1;
  }
  return Initializer::values(weights);
}

class AirbenchBuilder {
 public:
  AirbenchBuilder(Graph& graph, const AirbenchConfig& config, bool training)
      : graph_(graph), config_(config) {
    norm_.training = training;
  }

  Value logits(Value images) {
    Value x = gelu(whitened(images));
    for (std::size_t i = 0; i < config_.widths.size(); ++i) {
      x = group(x, fmt::format("group{}", i + 1), config_.widths[i]);
    }
    x = max_pool2d(x, {.size = {3, 3}, .strides = {3, 3}});
    x = reshape(x, {x.shape()[0], -1});
    // The original draws these weights with standard deviation 1, which a uniform distribution
    // within ±√3 has.
    const float bound = std::sqrt(3.0f);
    const Value weights = graph_.variable("head/w", {x.shape()[1], config_.classes},
                                          Initializer::uniform(-bound, bound));
    return matmul(x, weights) * (1 / double(x.shape()[1]));
  }

 private:
  Value whitened(Value images) {
    const auto scope = graph_.scope("whiten");
    const std::int64_t channels = images.shape()[1], filters = whitening_filter_count(channels);
    const Value weights =
        graph_.variable("w", {filters, channels, kPatch, kPatch},
                        config_.whitening.defined() ? Initializer::values(config_.whitening)
                                                    : Initializer::zeros());
    // The biases are added after the convolution. If conv2d added them, their gradient would be
    // computed together with that of the filters, which nobody needs.
    const Value biases = reshape(graph_.variable("b", {filters}), {filters, 1, 1});
    return conv2d(images, weights, {.padding = Padding::valid()}) + biases;
  }

  Value conv(Value x, const std::string& name, std::int64_t channels) {
    const Shape shape{channels, x.shape()[1], 3, 3};
    return conv2d(x, graph_.variable(name, shape, partly_identity(shape, config_.seed, name)));
  }

  Value group(Value x, const std::string& name, std::int64_t channels) {
    x = max_pool2d(conv(x, name + "/conv1/w", channels));
    x = gelu(batch_norm(x, name + "/norm1", norm_));
    return gelu(batch_norm(conv(x, name + "/conv2/w", channels), name + "/norm2", norm_));
  }

  Graph& graph_;
  const AirbenchConfig& config_;
  BatchNormOptions norm_{.momentum = 0.6, .epsilon = 1e-12, .gains = false};
};

AirbenchGraph inputs(Graph& graph, const AirbenchConfig& config) {
  return {.images = graph.input("images", {config.batch, 3, kAirbenchPixels, kAirbenchPixels}),
          .labels = graph.input("labels", {config.batch}, DType::kInt32)};
}

// Muon: scales the weights to norm √rows. Then subtracts the learning rate times the momentum of
// the gradient, which three steps of a Newton–Schulz iteration have made nearly orthogonal.
Rule muon(std::int64_t rows) {
  return CustomRule{.name = "muon",
                    .learning_rate = float(kMuonRate),
                    .slots = {{"m"}},
                    .update =
                        [rows](const RuleTerms& r) {
                          const Value m = kMuonMomentum * r.slots[0] + r.gradient;
                          const Value ahead = r.gradient + kMuonMomentum * m;
                          Value x = ahead / (sqrt(reduce_sum(square(ahead))) + 1e-7);
                          for (int i = 0; i < 3; ++i) {
                            const Value a = matmul(x, x, false, true);
                            x = 3.4445 * x + matmul(2.0315 * matmul(a, a) - 4.775 * a, x);
                          }
                          const Value length =
                              std::sqrt(double(rows)) / sqrt(reduce_sum(square(r.value)));
                          return RuleUpdate{r.value * length - r.learning_rate * x, {m}};
                        },
                    .whole = true};
}

// Multiplies the recipe's learning rate by the batch: that rate is for the sum of the losses, and
// the loss here is their mean.
Rule sgd(double rate, std::int64_t batch) {
  return Momentum{
      .learning_rate = float(rate * double(batch)), .momentum = float(kMomentum), .nesterov = true};
}

}  // namespace

AirbenchGraph build_airbench(Graph& graph, const AirbenchConfig& config) {
  AirbenchGraph airbench = inputs(graph, config);
  airbench.logits =
      graph.named("logits", AirbenchBuilder(graph, config, true).logits(airbench.images));
  airbench.loss =
      graph.named("cross_entropy",
                  reduce_mean(softmax_cross_entropy(airbench.logits, airbench.labels, kSmoothing)));
  return airbench;
}

Value airbench_views(Value images, const AirbenchConfig& config) {
  return mean_of_views(AirbenchBuilder(images.graph(), config, false).logits(image_views(images)));
}

AirbenchGraph build_airbench_views(Graph& graph, const AirbenchConfig& config) {
  AirbenchGraph airbench = inputs(graph, config);
  airbench.logits = graph.named("logits", airbench_views(airbench.images, config));
  return airbench;
}

Training airbench_minimize(const AirbenchGraph& airbench, const AirbenchConfig& config) {
  const auto falling = [](std::int64_t steps) { return Schedule::polynomial(steps, 0, 1); };
  MinimizeOptions options;
  options.learning_rate = falling(config.steps);
  const Rule biases = sgd(kBiasRate, config.batch);
  constexpr float kBiasDecay = float(kDecay / kBiasRate);
  options.groups = {{.prefix = "whiten/w", .frozen = true},
                    {.prefix = "whiten/b",
                     .weight_decay = kBiasDecay,
                     .learning_rate = falling(config.whitening_steps())},
                    {.prefix = "head/w",
                     .rule = sgd(kHeadRate, config.batch),
                     .weight_decay = float(kDecay / kHeadRate)}};
  for (std::size_t i = 0; i < config.widths.size(); ++i) {
    for (int layer = 1; layer <= 2; ++layer) {
      options.groups.push_back({.prefix = fmt::format("group{}/conv{}/w", i + 1, layer),
                                .rule = muon(config.widths[i])});
      options.groups.push_back({.prefix = fmt::format("group{}/norm{}/offsets", i + 1, layer),
                                .weight_decay = kBiasDecay});
    }
  }
  return minimize(airbench.loss, biases, options);
}

std::map<std::string, std::string> airbench_modules(const AirbenchConfig& config) {
  // A group has these modules: convolution, pooling, norm, GELU, convolution, norm, GELU.
  constexpr std::size_t kModules = 7;
  const std::pair<const char*, std::size_t> places[] = {
      {"conv1", 0}, {"norm1", 2}, {"conv2", 4}, {"norm2", 5}};
  std::map<std::string, std::string> modules;
  for (std::size_t group = 0; group < config.widths.size(); ++group) {
    for (const auto& [name, place] : places) {
      modules[fmt::format("group{}/{}", group + 1, name)] =
          fmt::format("groups.{}", kModules * group + place);
    }
  }
  return modules;
}

}  // namespace paceline::models
