#include "models/cifar10.h"

#include <fmt/format.h>

#include <chrono>

#include "models/cifar10_graph.h"
#include "models/generated_images.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kDefaultSteps = 100'000;
constexpr std::int64_t kGeneratedBatches = 8;

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
  return {batch_setting(128),
          {.name = "learning_rate",
           .value = 0.1,
           .help = "SGD's learning rate before its steps",
           .least = 0,
           .most = 1e6},
          {.name = "average_decay",
           .value = 0.9999,
           .help = "Decay of the moving averages; 0: none",
           .least = 0,
           .most = 0.999999}};
}

Cifar10Config cifar10_config(const Settings& settings) {
  return {.batch = settings.whole("batch"),
          .learning_rate = settings.number("learning_rate"),
          .average_decay = settings.number("average_decay")};
}

class Cifar10Model : public Model {
 public:
  Cifar10Model()
      : Model({.name = "cifar10",
               .summary = "two convolutions and three dense layers on images: 4.3 MB of parameters",
               .settings = cifar10_settings()}) {}

  void check(const Cluster&, const RunOptions&, const Settings&) const override {}

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    const Cifar10Config config = cifar10_config(settings);
    RunOptions limited = run;
    if (!run.steps && !run.seconds) limited.steps = kDefaultSteps;
    Graph graph;
    const Cifar10Graph cifar10 = build_cifar10(graph, config.batch);
    Session session(cifar10_minimize(cifar10, config), cluster, limited,
                    {.unit = "images", .model = "cifar10", .watch = {cifar10.loss}});
    session.add(ImagesPerSecond(cifar10.loss));
    const LabelledImages data =
        generate_images(kGeneratedBatches * config.batch * session.workers(), kCifar10Pixels,
                        kCifar10Classes, run.seed);
    const ArrayBatches batches(
        {{cifar10.images, data.images}, {cifar10.labels, data.labels}},
        {.seed = run.seed, .part = session.worker_index(), .parts = session.workers()});
    const auto feed = prefetch(batches);
    while (session.run(feed)) {
    }
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
