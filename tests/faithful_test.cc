// Tests one training step of each model, and five steps of resnet: rewritten and computed in
// float32 on the CPU, every contribution agrees within 1e-4 with naive kernels in float64 on the
// same numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "graph/rewrite.h"
#include "kernels/device.h"
#include "kernels/evaluate.h"
#include "models/airbench_graph.h"
#include "models/cifar10_graph.h"
#include "models/mlp.h"
#include "models/ptb.h"
#include "models/ptb_graph.h"
#include "models/resnet_graph.h"
#include "models/testing/standardised_images.h"
#include "models/whitening.h"
#include "paceline/graph.h"
#include "paceline/op.h"
#include "paceline/session.h"
#include "tests/step_values.h"

namespace paceline::testing {
namespace {

/// A copy of a graph in which all float32 values are float64, with a map from the old values to the
/// new ones.
class GraphInDouble {
 public:
  explicit GraphInDouble(const Graph& graph);
  Value operator()(const Value& old) const { return values_.at({old.node().id(), old.output()}); }

 private:
  Graph graph_;
  std::map<std::pair<int, int>, Value> values_;
};

/// Returns the tensor, in float64 if it is float32.
Tensor in_double(const Tensor& tensor);

/// Returns ‖a − b‖ ÷ ‖b‖ for float32 `a` and float64 `b`.
double relative_distance(const Tensor& a, const Tensor& b);

Attributes attributes_in_double(const Attributes& attributes) {
  Attributes result;
  for (auto [name, item] : attributes.items()) {
    const DType* dtype = std::get_if<DType>(&item);
    if (dtype != nullptr && *dtype == DType::kFloat32) item = DType::kFloat64;
    if (const Tensor* tensor = std::get_if<Tensor>(&item)) item = in_double(*tensor);
    result.set(name, item);
  }
  return result;
}

GraphInDouble::GraphInDouble(const Graph& graph) : graph_(graph.ops()) {
  for (const auto& node : graph.nodes()) {
    std::vector<Value> inputs;
    for (const Value& input : node->inputs()) inputs.push_back((*this)(input));
    const Node& added =
        graph_.add(node->op().name, inputs, attributes_in_double(node->attributes()), node->name());
    for (int k = 0; k < int(node->outputs().size()); ++k) {
      values_[{node->id(), k}] = added.output(k);
    }
  }
}

Tensor in_double(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32) return tensor;
  Tensor result(DType::kFloat64, tensor.shape());
  std::ranges::copy(tensor.data<float>(), result.data<double>().begin());
  return result;
}

double relative_distance(const Tensor& a, const Tensor& b) {
  const Tensor wide = in_double(a);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.data<double>().size(); ++i) {
    const double x = wide.data<double>()[i], y = b.data<double>()[i];
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

using namespace models;

constexpr double kTolerance = 1e-4;

Feeds feeds_in_double(const Feeds& feeds) {
  Feeds result;
  for (const auto& [name, tensor] : feeds) result[name] = in_double(tensor);
  return result;
}

std::unique_ptr<Device> device(const char* kind) {
  static RealClock clock;
  return make_device({.kind = kind, .threads = 2}, clock);
}

void expect_faithful(const Training& training) {
  const Feeds feeds = step_feeds(training.graph());
  const GraphInDouble wide(training.graph());
  std::vector<Value> values, wide_values;
  const std::vector<Root> roots = roots_of(training);
  for (const Root& root : roots) {
    values.push_back(root.value);
    wide_values.push_back(wide(root.value));
  }
  const RewrittenGraph fast = rewrite(training.graph(), values, true, {}, nullptr);
  const auto result = evaluate_graph(fast.roots, feeds, *device("cpu"));
  const auto exact = evaluate_graph(wide_values, feeds_in_double(feeds), *device("naive"));
  for (std::size_t i = 0; i < roots.size(); ++i) {
    EXPECT_LE(relative_distance(result[i], exact[i]), kTolerance) << roots[i].name;
  }
}

TEST(Faithful, AStepOfMlp) {
  Graph graph;
  const MlpConfig config{.batch = 32, .features = 64, .hidden = 256};
  expect_faithful(minimize(build_mlp(graph, config).loss, config.rule));
}

TEST(Faithful, AStepOfPtb) {
  Graph graph;
  const PtbConfig config =
      ptb_config(ptb_model().settings({{"hidden", "60"}, {"unroll", "10"}, {"batch", "8"}}));
  expect_faithful(
      ptb_minimize(build_ptb(graph, config, config.batch, config.unroll, true), config));
}

TEST(Faithful, AStepOfCifar10) {
  Graph graph;
  expect_faithful(cifar10_minimize(build_cifar10(graph, 8), {.batch = 8}));
}

TEST(Faithful, AStepOfResnet8) {
  Graph graph;
  expect_faithful(resnet_minimize(build_resnet(graph, 1, 8, true), {.batch = 8, .units = 1}));
}

TEST(Faithful, AStepOfAirbench) {
  AirbenchConfig config{.batch = 8, .widths = {24, 32, 32}};
  config.whitening = whitening_filters(standardised_images(8, kAirbenchPixels, 10, 1).images);
  Graph graph;
  expect_faithful(airbench_minimize(build_airbench(graph, config), config));
}

/// Trains with momentum, weight decay and moving averages in float64, with naive kernels.
class TrainingInDouble {
 public:
  TrainingInDouble(const Training& training, const ResnetConfig& config)
      : training_(training),
        config_(config),
        graph_(training.graph()),
        feeds_(feeds_in_double(step_feeds(training.graph()))) {
    roots_.push_back(graph_(training.loss));
    for (const VariableUpdate& update : training.updates) {
      roots_.push_back(graph_(update.contribution.dense));
      velocities_.emplace_back(std::size_t(update.variable.shape().elements()), 0.0);
    }
  }

  /// Returns the loss before the update.
  double step(const LabelledImages& batch) {
    feeds_["images"] = in_double(batch.images);
    feeds_["labels"] = batch.labels;
    const auto values = evaluate_graph(roots_, feeds_, *device("naive"));
    for (std::size_t i = 0; i < training_.updates.size(); ++i) update(i, values[i + 1]);
    return values[0].item<double>();
  }

 private:
  void update(std::size_t i, const Tensor& contribution) {
    const VariableUpdate& update = training_.updates[i];
    const std::span<double> w = feeds_[update.variable.name()].data<double>();
    const std::span<double> g = contribution.data<double>();
    for (std::size_t k = 0; k < w.size(); ++k) {
      if (!update.rule.takes_gradient()) {
        w[k] = 0.9 * w[k] + 0.1 * g[k];
        continue;
      }
      double& v = velocities_[i][k];
      v = config_.momentum * v + g[k] + double(update.weight_decay) * w[k];
      w[k] -= config_.learning_rate * v;
    }
  }

  const Training& training_;
  const ResnetConfig config_;
  const GraphInDouble graph_;
  Feeds feeds_;
  std::vector<Value> roots_;
  std::vector<std::vector<double>> velocities_;
};

// The test uses a tenth of the model's learning rate. At the full rate, rounding alone would make
// float32 and float64 differ by 1.6e-4.
TEST(Faithful, FiveStepsOfResnet8) {
  const ResnetConfig config{.batch = 8, .units = 1, .learning_rate = 0.01};
  Graph graph;
  const ResnetGraph resnet = build_resnet(graph, config.units, config.batch, true);
  const Training training = resnet_minimize(resnet, config);
  TrainingInDouble exact(training, config);
  RunOptions run;
  run.quiet = true;
  run.seed = 1;
  Session session(training, {}, run);
  for (int step = 0; step < 5; ++step) {
    const LabelledImages batch = standardised_images(config.batch, kResnetPixels, 10, step);
    const auto result = session.step([&](Feed& feed) {
      feed.set(resnet.images, batch.images).set(resnet.labels, batch.labels);
    });
    const double loss = exact.step(batch);
    EXPECT_NEAR(result->loss, loss, kTolerance * loss) << "step " << step;
  }
}

}  // namespace

}  // namespace paceline::testing
