#include "models/cifar10_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/airbench_graph.h"
#include "models/cifar10_graph.h"
#include "models/whitening.h"
#include "paceline/error.h"
#include "paceline/program.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kEvaluationBatch = 100;
constexpr std::int64_t kReportSteps = 100'000;
constexpr std::int64_t kFastBatch = 2000, kFastEpochs = 8;
constexpr std::int64_t kWhitenedImages = 5000;  // the number that the filters are made from

/// The settings of the recipes themselves; cifar10_settings() adds those that all image models
/// share.
struct Cifar10Settings {
  Cifar10Settings() { batch.default_text = fmt::format("128, with --recipe fast {}", kFastBatch); }

  Setting<std::int64_t> batch = batch_setting(128);
  Setting<std::string> recipe = {
      .name = "recipe",
      .value = "report",
      .help =
          "report: the network of TensorFlow issue 6520; fast: airbench94 with Muon, about "
          "94% on CIFAR-10 in 8 epochs, whose learning rates fall to 0 over --steps",
      .choices = {"report", "fast"},
      .flag = true};
  Setting<double> learning_rate = {.name = "learning_rate",
                                   .value = 0.1,
                                   .help = "SGD's learning rate before its steps",
                                   .least = 0,
                                   .most = 1e6};
  Setting<double> average_decay = {.name = "average_decay",
                                   .value = 0.9999,
                                   .help = "Decay of the moving averages; 0: none",
                                   .least = 0,
                                   .most = 0.999999};
};

/// The training of the report in TensorFlow issue 6520.
class ReportRecipe : public Cifar10Recipe {
 public:
  ReportRecipe(const Settings& settings, const Cifar10Settings& own, const RunOptions& run)
      : config_{.batch = settings[own.batch],
                .learning_rate = settings[own.learning_rate],
                .average_decay = settings[own.average_decay]},
        seed_(run.seed),
        steps_(run.steps.value_or(kReportSteps)) {}

  ImageUse use() const override {
    return ImageUse::cifar10(config_.batch, kEvaluationBatch, seed_);
  }
  std::int64_t steps() const override { return steps_; }
  TrainedImages train(Graph& graph, std::int64_t batch, std::int64_t classes) const override {
    const Cifar10Graph built = build_cifar10(graph, batch, classes);
    return {built.images,
            built.labels,
            built.logits,
            cifar10_loss_terms(built),
            cifar10_minimize(built, config_),
            cifar10_modules()};
  }
  Classifier classify(Graph& graph, std::int64_t classes, std::int64_t batch) const override {
    const Cifar10Graph built = build_cifar10(graph, batch, classes);
    return {built.images, built.logits};
  }
  EvaluateWith evaluated() const override {
    return config_.average_decay > 0 ? EvaluateWith::kAverages : EvaluateWith::kVariables;
  }

 private:
  const Cifar10Config config_;
  const std::uint64_t seed_;
  const std::int64_t steps_;
};

class FastRecipe : public Cifar10Recipe {
 public:
  FastRecipe(const Settings& settings, const Cifar10Settings& own, const RunOptions& run,
             const Cluster& cluster)
      : given_steps_(run.steps), cluster_(cluster) {
    config_.batch = settings.given(own.batch) ? settings[own.batch] : kFastBatch;
    config_.seed = run.seed;
    config_.steps = given_steps_.value_or(config_.steps);
  }

  ImageUse use() const override {
    return ImageUse::airbench(config_.batch, kEvaluationBatch, config_.seed);
  }

  void look_at(const ImageInput& input) override {
    Pipeline images = input.undistorted();
    const std::int64_t all = input.images();
    images.seed(config_.seed).shuffle(all).batch(std::min(kWhitenedImages, all));
    config_.whitening = whitening_filters(images);
    config_.steps = given_steps_.value_or(fast_steps(all, config_.batch, cluster_));
  }

  std::int64_t steps() const override { return config_.steps; }

  TrainedImages train(Graph& graph, std::int64_t batch, std::int64_t classes) const override {
    const AirbenchConfig config = config_for(batch, classes);
    const AirbenchGraph built = build_airbench(graph, config);
    return {built.images,
            built.labels,
            built.logits,
            {{"cross-entropy", built.loss}},
            airbench_minimize(built, config_),
            airbench_modules(config)};
  }

  Classifier classifier(const TrainedImages& trained, std::int64_t classes) const override {
    return {trained.images, airbench_views(trained.images, config_for(config_.batch, classes))};
  }

  Classifier classify(Graph& graph, std::int64_t classes, std::int64_t batch) const override {
    const AirbenchGraph built = build_airbench_views(graph, config_for(batch, classes));
    return {built.images, built.logits};
  }

  EvaluateWith evaluated() const override { return EvaluateWith::kVariables; }
  bool few_steps() const override { return true; }

 private:
  AirbenchConfig config_for(std::int64_t batch, std::int64_t classes) const {
    AirbenchConfig config = config_;
    config.batch = batch;
    config.classes = classes;
    return config;
  }

  AirbenchConfig config_;
  const std::optional<std::int64_t> given_steps_;
  const Cluster cluster_;
};

}  // namespace

std::int64_t fast_steps(std::int64_t images, std::int64_t batch, const Cluster& cluster) {
  const std::int64_t epoch = images / batch / batches_of_step(cluster);
  return std::max<std::int64_t>(1, kFastEpochs * epoch);
}

OnnxModel cifar10_inference(const SavedShapes& saved) {
  if (!saved.contains("head/w")) {
    const std::int64_t classes = saved_shape(saved, "dense3/b")[0];
    return classifier_inference([=](Graph& graph, std::int64_t batch) -> Classifier {
      const Cifar10Graph built = build_cifar10(graph, batch, classes);
      return {built.images, built.logits};
    });
  }
  AirbenchConfig config;
  config.classes = saved_shape(saved, "head/w")[1];
  for (std::size_t i = 0; i < config.widths.size(); ++i) {
    config.widths[i] = saved_shape(saved, fmt::format("group{}/conv1/w", i + 1))[0];
  }
  return classifier_inference([=](Graph& graph, std::int64_t batch) -> Classifier {
    AirbenchConfig sized = config;
    sized.batch = batch;
    const AirbenchGraph built = build_airbench_views(graph, sized);
    return {built.images, built.logits};
  });
}

std::vector<AnySetting> cifar10_settings() {
  const Cifar10Settings own;
  std::vector<AnySetting> settings = {own.batch, own.recipe, own.learning_rate, own.average_decay,
                                      evaluation_interval_setting()};
  const std::vector<AnySetting> images =
      ImageSettings("40% of the data, with --recipe fast all").all();
  settings.insert(settings.end(), images.begin(), images.end());
  return settings;
}

std::unique_ptr<Cifar10Recipe> cifar10_recipe(const Settings& settings, const RunOptions& run,
                                              const Cluster& cluster) {
  const Cifar10Settings own;
  if (settings[own.recipe] == "report") return std::make_unique<ReportRecipe>(settings, own, run);
  for (const Setting<double>* const setting : {&own.learning_rate, &own.average_decay}) {
    if (!settings.given(*setting)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("--set {}: --recipe fast has its own", setting->name));
  }
  return std::make_unique<FastRecipe>(settings, own, run, cluster);
}

}  // namespace paceline::models
