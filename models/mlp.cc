#include "models/mlp.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "paceline/hooks.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kDefaultSteps = 100'000;
// The largest β of Adam; with β = 1 Adam would divide by zero.
constexpr double kMostBeta = 0.999999;

/// Prints `Step: 70 1.79 steps/sec, loss 1.0042` every `every` own steps. If `every` is 0, the hook
/// prints after 10 steps and then at most one line a second.
class StepsPerSecond : public Hook {
 public:
  explicit StepsPerSecond(std::int64_t every) : every_(every) {}
  void begin(Session& session) override { printed(session.last_step().step); }
  bool after_step(Session& session, const StepResult& result) override {
    if (result.step % (every_ > 0 ? every_ : kUsualSteps) != 0) return true;
    const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
    if (every_ == 0 && seconds < 1 && !first_) return true;
    first_ = false;
    session.print(fmt::format("Step: {} {:.2f} steps/sec, loss {:.4f}", result.step,
                              double(result.step - since_step_) / seconds, result.loss));
    printed(result.step);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::int64_t kUsualSteps = 10;

  void printed(std::int64_t step) {
    since_ = Clock::now();
    since_step_ = step;
  }

  const std::int64_t every_;
  Clock::time_point since_;
  std::int64_t since_step_ = 0;
  bool first_ = true;
};

/// The settings of mlp.
struct MlpSettings {
  Setting<std::int64_t> batch = batch_setting(128);
  Setting<std::int64_t> hidden = {.name = "hidden",
                                  .value = 4096,
                                  .help = "Units of each hidden layer",
                                  .least = 1,
                                  .flag = true,
                                  .placeholder = "H"};
  Setting<std::int64_t> layers = {
      .name = "layers", .value = 2, .help = "Hidden layers", .least = 0, .most = 100'000};
  Setting<std::int64_t> features = {.name = "features",
                                    .value = 256,
                                    .help = "Elements of an example and of its target",
                                    .least = 1};
  Setting<double> learning_rate = {.name = "learning_rate",
                                   .value = 1e-4,
                                   .help = "Adam's learning rate",
                                   .least = 0,
                                   .most = 1e6};
  Setting<double> beta1 = {.name = "beta1",
                           .value = 0.9,
                           .help = "Adam's decay of the first moment",
                           .least = 0,
                           .most = kMostBeta};
  Setting<double> beta2 = {.name = "beta2",
                           .value = 0.999,
                           .help = "Adam's decay of the second moment",
                           .least = 0,
                           .most = kMostBeta};
  Setting<double> epsilon = {
      .name = "epsilon", .value = 1e-8, .help = "Adam's epsilon", .least = 0, .most = 1};
  Setting<std::int64_t> print_every = {
      .name = "print_every",
      .value = 0,
      .help = "Print the speed every so many steps; 0: at most once a second",
      .least = 0};

  std::vector<AnySetting> all() const {
    return {batch, hidden, layers, features, learning_rate, beta1, beta2, epsilon, print_every};
  }
};

}  // namespace

MlpConfig mlp_config(const Settings& settings) {
  const MlpSettings own;
  return {.batch = settings[own.batch],
          .features = settings[own.features],
          .hidden = settings[own.hidden],
          .layers = settings[own.layers],
          .rule = {.learning_rate = float(settings[own.learning_rate]),
                   .beta1 = float(settings[own.beta1]),
                   .beta2 = float(settings[own.beta2]),
                   .epsilon = float(settings[own.epsilon])}};
}

std::map<std::string, std::string> mlp_modules(const MlpConfig& config) {
  std::map<std::string, std::string> modules;
  for (std::int64_t layer = 0; layer <= config.layers; ++layer) {
    modules[fmt::format("layer{}", layer + 1)] = fmt::format("layers.{}", 2 * layer);
  }
  return modules;
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
               .settings = MlpSettings{}.all()}) {}

  void check(const Cluster&, const RunOptions&, const Settings&) const override {}

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    const MlpConfig config = mlp_config(settings);
    RunOptions limited = run;
    if (!run.steps && !run.seconds) limited.steps = kDefaultSteps;
    Graph graph;
    const MlpGraph mlp = build_mlp(graph, config);
    Session session(minimize(mlp.loss, config.rule), cluster, limited,
                    {.model = "mlp", .modules = mlp_modules(config)});
    session.add(StepsPerSecond(settings[MlpSettings{}.print_every]));
    session.run([&](Feed& feed) { feed.normal(mlp.x).normal(mlp.y); });
  }

  std::optional<OnnxModel> onnx_model(const SavedShapes& saved) const override {
    const Shape& first = saved_shape(saved, "layer1/w");
    MlpConfig config{.features = first[0], .hidden = first[1], .layers = 0};
    while (saved.contains(fmt::format("layer{}/w", config.layers + 2))) ++config.layers;
    return OnnxModel{.build = [config](std::span<const std::int64_t> sizes) {
      MlpConfig sized = config;
      sized.batch = sizes[0];
      InferenceGraph made{.graph = std::make_unique<Graph>()};
      const MlpGraph mlp = build_mlp(*made.graph, sized);
      made.inputs = {{"x", mlp.x}};
      made.outputs = {{"predictions", mlp.predictions}};
      return made;
    }};
  }

  std::vector<StepGraph> step_graphs(const Settings& settings) const override {
    const MlpConfig config = mlp_config(settings);
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
