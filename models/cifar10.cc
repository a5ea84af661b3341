#include "models/cifar10.h"

#include "models/cifar10_graph.h"
#include "models/image_hooks.h"
#include "models/image_training.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kCifar10Steps = 100'000;

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

ImageUse cifar10_use(const Settings& settings, const RunOptions& run) {
  return ImageUse::cifar10(settings.whole("batch"), 100, run.seed);
}

EvaluateWith evaluated_values(const Cifar10Config& config) {
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
    check_image_data(settings, cifar10_use(settings, run), cluster);
  }

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    const Cifar10Config config = cifar10_config(settings);
    RunOptions limited = run;
    if (!run.steps && !run.seconds) limited.steps = kCifar10Steps;
    const ImageUse use = cifar10_use(settings, run);
    ImageInput input(settings, use, cluster);
    Graph graph, evaluation_graph;
    const Cifar10Graph cifar10 = build_cifar10(graph, config.batch, input.classes());
    const auto feed = input.feed(cifar10.images, cifar10.labels);
    const std::vector<LossTerm> terms = cifar10_loss_terms(cifar10);
    Session session(
        cifar10_minimize(cifar10, config), cluster, limited,
        {.unit = "images", .model = "cifar10", .watch = values_of(terms), .input = input.report()});
    session.add(ImagesPerSecond(terms)).add(ElapsedTime());
    const Cifar10Graph evaluated =
        build_cifar10(evaluation_graph, use.evaluation_batch, input.classes());
    train_images(session, feed, input, {evaluated.images, evaluated.logits},
                 evaluated_values(config), settings);
  }

  bool can_evaluate() const override { return true; }

  Evaluation evaluate(const RunOptions& run, const Settings& settings) const override {
    const Cifar10Config config = cifar10_config(settings);
    const ImageUse use = cifar10_use(settings, run);
    const ImageInput input(settings, use, {});
    Graph graph, evaluation_graph;
    const Cifar10Graph cifar10 = build_cifar10(graph, config.batch, input.classes());
    const Cifar10Graph evaluated =
        build_cifar10(evaluation_graph, use.evaluation_batch, input.classes());
    return evaluate_checkpoint(cifar10_minimize(cifar10, config),
                               {evaluated.images, evaluated.logits}, input,
                               evaluated_values(config), run);
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
