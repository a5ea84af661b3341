#include "models/mlp.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>

#include "models/settings.h"
#include "paceline/hooks.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kDefaultSteps = 100'000;
// At 1 Adam divides by zero.
constexpr double kMostBeta = 0.999999;

/// `Step: 70 1.79 steps/sec`, every 10 own steps.
class StepsPerSecond : public Hook {
 public:
  void begin(Session&) override { since_ = std::chrono::steady_clock::now(); }
  bool after_step(Session& session, const StepResult& result) override {
    if (result.step % kEvery != 0) return true;
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - since_).count();
    since_ = now;
    session.print(fmt::format("Step: {} {:.2f} steps/sec", result.step, double(kEvery) / seconds));
    return true;
  }

 private:
  static constexpr std::int64_t kEvery = 10;
  std::chrono::steady_clock::time_point since_;
};

std::span<const HyperParameter> mlp_parameters() {
  static const std::array<HyperParameter, 8> parameters = {{
      {"learning_rate", "1e-4", "Adam's learning rate"},
      {"beta1", "0.9", "Adam's decay of the first moment"},
      {"beta2", "0.999", "Adam's decay of the second moment"},
      {"epsilon", "1e-8", "Adam's epsilon"},
      {"batch", "128", "examples per step"},
      {"features", "256", "elements of an example and of its target"},
      {"hidden", "4096", "units of each hidden layer"},
      {"layers", "2", "hidden layers"},
  }};
  return parameters;
}

}  // namespace

MlpConfig mlp_config(const ModelOptions& options) {
  Settings settings("mlp", mlp_parameters(), options.set);
  settings.set_default("batch", options.batch);
  settings.set_default("hidden", options.hidden);
  return {.batch = settings.whole("batch", 1),
          .features = settings.whole("features", 1),
          .hidden = settings.whole("hidden", 1),
          .layers = settings.whole("layers", 0),
          .rule = {.learning_rate = float(settings.number("learning_rate", 0, 1e6)),
                   .beta1 = float(settings.number("beta1", 0, kMostBeta)),
                   .beta2 = float(settings.number("beta2", 0, kMostBeta)),
                   .epsilon = float(settings.number("epsilon", 0, 1))}};
}

MlpGraph build_mlp(Graph& graph, const MlpConfig& config) {
  const Shape shape{config.batch, config.features};
  MlpGraph mlp{.x = graph.input("x", shape), .y = graph.input("y", shape)};
  Value h = mlp.x;
  for (std::int64_t layer = 1; layer <= config.layers; ++layer) {
    h = relu(dense(h, config.hidden, fmt::format("layer{}", layer)));
  }
  h = relu(dense(h, config.features, fmt::format("layer{}", config.layers + 1)));
  mlp.predictions = graph.named("predictions", h);
  mlp.loss = graph.named("loss", mean_squared_error(mlp.predictions, mlp.y));
  return mlp;
}

namespace {

class MlpModel : public Model {
 public:
  MlpModel()
      : Model({.name = "mlp",
               .summary = "dense 256-4096-4096-256 on noise, Adam: 75.5 MB of parameters",
               .flags = {"batch", "hidden"},
               .hyper_parameters = mlp_parameters()}) {}

  void check(const Cluster&, const RunOptions&, const ModelOptions& options) const override {
    mlp_config(options);
  }

  void run(const Cluster& cluster, const RunOptions& run,
           const ModelOptions& options) const override {
    const MlpConfig config = mlp_config(options);
    RunOptions limited = run;
    if (!run.steps && !run.seconds) limited.steps = kDefaultSteps;
    Graph graph;
    const MlpGraph mlp = build_mlp(graph, config);
    Session session(minimize(mlp.loss, config.rule), cluster, limited, {.model = "mlp"});
    session.add(StepsPerSecond()).add(Progress());
    session.run([&](Feed& feed) { feed.normal(mlp.x).normal(mlp.y); });
  }

  std::vector<StepGraph> step_graphs(const ModelOptions& options) const override {
    const MlpConfig config = mlp_config(options);
    auto graph = std::make_unique<Graph>();
    const MlpGraph mlp = build_mlp(*graph, config);
    std::vector<StepGraph> steps;
    steps.push_back({"", std::move(graph), minimize(mlp.loss, config.rule)});
    return steps;
  }
};

}  // namespace

const Model& mlp_model() {
  static const MlpModel model;
  return model;
}

}  // namespace paceline::models
