#include "models/cifar10.h"

#include <fmt/format.h>

#include <chrono>

#include "models/cifar10_graph.h"
#include "models/image_training.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kDefaultSteps = 100'000;

/// Prints `step 10, loss = 4.66 (2514.3 images/s; 0.051 s/step)` every 10 own steps, and the terms
/// of the loss every 100.
class ImagesPerSecond : public Hook {
 public:
  explicit ImagesPerSecond(Value cross_entropy) : cross_entropy_(cross_entropy) {}
  void begin(Session& session) override {
    if (since_step_ < 0) printed(session.last_step().step);
  }
  bool after_step(Session& session, const StepResult& result) override {
    if (result.step % 10 == 0) print_rate(session, result);
    if (result.step % 100 == 0) print_terms(session, result);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void print_rate(Session& session, const StepResult& result) {
    const double steps = double(result.step - since_step_);
    const double seconds = std::chrono::duration<double>(Clock::now() - since_).count() / steps;
    const double images = double(session.options().examples_per_step);
    session.print(fmt::format("step {}, loss = {:.2f} ({:.1f} images/s; {:.3f} s/step)",
                              result.step, result.loss, images / seconds, seconds));
    printed(result.step);
  }
  void print_terms(Session& session, const StepResult& result) {
    const double cross_entropy = double(session.value(cross_entropy_).item<float>());
    session.print(
        fmt::format("step {}, cross-entropy = {:.4f}, weight decay = {:.4f}, total = {:.4f}",
                    result.step, cross_entropy, result.loss - cross_entropy, result.loss));
  }
  void printed(std::int64_t step) {
    since_ = Clock::now();
    since_step_ = step;
  }

  const Value cross_entropy_;
  Clock::time_point since_;
  std::int64_t since_step_ = -1;
};

std::vector<Setting> cifar10_settings() {
  std::vector<Setting> settings = {batch_setting(128),
                                   {.name = "learning_rate",
                                    .value = 0.1,
                                    .help = "SGD's learning rate before its steps",
                                    .least = 0,
                                    .most = 1e6},
                                   {.name = "average_decay",
                                    .value = 0.9999,
                                    .help = "Decay of the moving averages; 0: none",
                                    .least = 0,
                                    .most = 0.999999},
                                   evaluation_interval_setting()};
  const std::vector<Setting> images = image_settings("40% of the data");
  settings.insert(settings.end(), images.begin(), images.end());
  return settings;
}

Cifar10Config cifar10_config(const Settings& settings) {
  return {.batch = settings.whole("batch"),
          .learning_rate = settings.number("learning_rate"),
          .average_decay = settings.number("average_decay")};
}

ImageUse use_of(const Settings& settings, const RunOptions& run) {
  return ImageUse::cifar10(settings.whole("batch"), 100, run.seed);
}

EvaluateWith values_of(const Cifar10Config& config) {
  return config.average_decay > 0 ? EvaluateWith::kAverages : EvaluateWith::kVariables;
}

class Cifar10Model : public Model {
 public:
  Cifar10Model()
      : Model({.name = "cifar10",
               .summary = "two convolutions and three dense layers on images: 4.3 MB of parameters",
               .settings = cifar10_settings()}) {}

  void check(const Cluster& cluster, const RunOptions& run,
             const Settings& settings) const override {
    check_image_data(settings, use_of(settings, run), cluster);
  }

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    const Cifar10Config config = cifar10_config(settings);
    RunOptions limited = run;
    if (!run.steps && !run.seconds) limited.steps = kDefaultSteps;
    const ImageUse use = use_of(settings, run);
    ImageInput input(settings, use, cluster);
    Graph graph, evaluation_graph;
    const Cifar10Graph cifar10 = build_cifar10(graph, config.batch, input.classes());
    const auto feed = input.feed(cifar10.images, cifar10.labels);
    Session session(
        cifar10_minimize(cifar10, config), cluster, limited,
        {.unit = "images", .model = "cifar10", .watch = {cifar10.loss}, .input = input.report()});
    session.add(ImagesPerSecond(cifar10.loss));
    const Cifar10Graph evaluated =
        build_cifar10(evaluation_graph, use.evaluation_batch, input.classes());
    train_images(session, feed, input, {evaluated.images, evaluated.logits}, values_of(config),
                 settings);
  }

  bool can_evaluate() const override { return true; }

  Evaluation evaluate(const RunOptions& run, const Settings& settings) const override {
    const Cifar10Config config = cifar10_config(settings);
    const ImageUse use = use_of(settings, run);
    const ImageInput input(settings, use, {});
    Graph graph, evaluation_graph;
    const Cifar10Graph cifar10 = build_cifar10(graph, config.batch, input.classes());
    const Cifar10Graph evaluated =
        build_cifar10(evaluation_graph, use.evaluation_batch, input.classes());
    return evaluate_checkpoint(cifar10_minimize(cifar10, config),
                               {evaluated.images, evaluated.logits}, input, values_of(config), run);
  }

  std::vector<StepGraph> step_graphs(const Settings& settings) const override {
    const Cifar10Config config = cifar10_config(settings);
    auto graph = std::make_unique<Graph>();
    const Cifar10Graph cifar10 = build_cifar10(*graph, config.batch);
    std::vector<StepGraph> steps;
    steps.push_back({"", std::move(graph), cifar10_minimize(cifar10, config)});
    return steps;
  }
};

}  // namespace

const Model& cifar10_model() {
  static const Cifar10Model model;
  return model;
}

}  // namespace paceline::models
