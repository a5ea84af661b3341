#include "models/resnet.h"

#include <fmt/format.h>

#include "models/image_hooks.h"
#include "models/image_inference.h"
#include "models/image_training.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kResnetSteps = 100'000;
constexpr std::int64_t kPrintEvery = 100;  // own steps

/// Prints `step 100, loss = 1.832, precision = 0.453` every 100 own steps.
class LossAndPrecision : public Hook {
 public:
  explicit LossAndPrecision(Value precision) : precision_(precision) {}
  bool after_step(Session& session, const StepResult& result) override {
    if (result.step % kPrintEvery != 0) return true;
    session.print(fmt::format("step {}, loss = {:.3f}, precision = {:.3f}", result.step,
                              result.loss, session.value(precision_).item<float>()));
    return true;
  }

 private:
  const Value precision_;
};

/// The settings of resnet.
struct ResnetSettings {
  Setting<std::int64_t> batch = batch_setting(128);
  Setting<std::int64_t> depth = {
      .name = "depth",
      .value = 110,
      .help = "Layers: 2 more than 6 times the units of a stage (20, 32, 44, 56, 110)",
      .least = 8,
      .most = 6002,
      .flag = true,
      .placeholder = "D"};
  Setting<std::int64_t> units = {.name = "units",
                                 .value = 18,
                                 .help = "Units of each of the three stages, in place of --depth",
                                 .least = 1,
                                 .most = 1000,
                                 .flag = true,
                                 .placeholder = "N",
                                 .default_text = "by --depth"};
  Setting<double> learning_rate = {.name = "learning_rate",
                                   .value = 0.1,
                                   .help = "The learning rate before --rates",
                                   .least = 0,
                                   .most = 1e6};
  Setting<std::string> rates = {
      .name = "rates",
      .value = "report",
      .help =
          "report: the learning rate falls to a tenth at steps 40,000, 60,000 and 80,000; "
          "cosine: it rises for a twentieth of --steps and then falls to 0 as half a cosine",
      .choices = {"report", "cosine"},
      .flag = true};
  Setting<double> momentum = {
      .name = "momentum", .value = 0.9, .help = "Momentum", .least = 0, .most = 1};

  std::vector<AnySetting> all() const {
    std::vector<AnySetting> settings = {
        batch, depth, units, learning_rate, rates, momentum, evaluation_interval_setting()};
    const std::vector<AnySetting> images = ImageSettings("16 batches").all();
    settings.insert(settings.end(), images.begin(), images.end());
    return settings;
  }
};

std::int64_t units_of(const Settings& settings) {
  const ResnetSettings own;
  if (settings.given(own.units)) {
    if (!settings.given(own.depth)) return settings[own.units];
    throw Error(ErrorCode::kUsage,
                "--depth and --units cannot both be given: the depth is 6 times the units and 2");
  }
  const std::int64_t depth = settings[own.depth];
  if (depth % 6 == 2) return depth / 6;
  throw Error(ErrorCode::kUsage,
              fmt::format("--depth {}: must be 2 more than a multiple of 6 (20, 32, 110)", depth));
}

}  // namespace

ResnetConfig resnet_config(const Settings& settings, std::optional<std::int64_t> steps) {
  const ResnetSettings own;
  ResnetConfig config{.batch = settings[own.batch],
                      .units = units_of(settings),
                      .learning_rate = settings[own.learning_rate],
                      .momentum = settings[own.momentum]};
  if (settings[own.rates] == "cosine") {
    if (!steps) {
      throw Error(ErrorCode::kUsage,
                  "--rates cosine needs --steps: the learning rate falls to 0 in them");
    }
    config.cosine_steps = steps;
  }
  return config;
}

namespace {

std::optional<std::int64_t> steps_of(const RunOptions& run) {
  if (!run.steps && !run.seconds) return kResnetSteps;
  return run.steps;
}

ImageUse resnet_use(const Settings& settings, const RunOptions& run) {
  return ImageUse::resnet(settings[ResnetSettings{}.batch], 100, run.seed);
}

// Builds the graph by which the model trains and evaluates, with an open batch.
ResnetGraph open_resnet(Graph& graph, const ResnetConfig& config, std::int64_t classes) {
  return build_resnet(graph, config.units, graph.open("batch", config.batch), true, classes);
}

Classifier resnet_classifier(Graph& graph, std::int64_t units, std::int64_t classes,
                             std::int64_t batch) {
  const ResnetGraph resnet = build_resnet(graph, units, batch, false, classes);
  return {resnet.images, resnet.logits};
}

class ResnetModel : public Model {
 public:
  ResnetModel()
      : Model({.name = "resnet",
               .summary = "ResNet-110 or another depth on images: 6.9 MB in 547 tensors",
               .settings = ResnetSettings{}.all()}) {}

  void check(const Cluster& cluster, const RunOptions& run,
             const Settings& settings) const override {
    resnet_config(settings, steps_of(run));
    check_image_data(settings, resnet_use(settings, run), cluster);
  }

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    const ResnetConfig config = resnet_config(settings, steps_of(run));
    RunOptions limited = run;
    limited.steps = steps_of(run);
    const ImageUse use = resnet_use(settings, run);
    ImageInput input(settings, use, cluster);
    Graph graph;
    const ResnetGraph resnet = open_resnet(graph, config, input.classes());
    const auto feed = input.feed(resnet.images, resnet.labels);
    Session session(resnet_minimize(resnet, config), cluster, limited,
                    {.unit = "images",
                     .model = "resnet",
                     .watch = {resnet.precision},
                     .input = input.report(),
                     .data_names = input.names(),
                     .modules = resnet_modules(config.units),
                     .shared_records = input.images()});
    session.add(LossAndPrecision(resnet.precision)).add(ElapsedTime()).add(Progress());
    train_images(session, feed, input, {resnet.images, resnet.logits}, EvaluateWith::kVariables,
                 evaluation_interval(settings));
  }

  std::vector<std::string> numbers() const override { return image_numbers(); }
  bool can_evaluate() const override { return true; }

  std::vector<std::string> evaluation_notes(const Settings& settings) const override {
    return image_notes(settings);
  }

  Evaluation evaluate(const RunOptions& run, const Settings& settings) const override {
    const ResnetConfig config = resnet_config(settings, kResnetSteps);
    const ImageUse use = resnet_use(settings, run);
    const ImageInput input(settings, use, {});
    Graph graph;
    const ResnetGraph resnet = open_resnet(graph, config, input.classes());
    return evaluate_checkpoint(resnet_minimize(resnet, config), {resnet.images, resnet.logits},
                               input, EvaluateWith::kVariables, run);
  }

  std::optional<OnnxModel> onnx_model(const SavedShapes& saved) const override {
    std::int64_t units = 0;
    while (saved.contains(fmt::format("stage1/unit{}/conv1/w", units + 1))) ++units;
    const std::int64_t classes = saved_shape(saved, "dense/b")[0];
    return classifier_inference([=](Graph& graph, std::int64_t batch) {
      return resnet_classifier(graph, units, classes, batch);
    });
  }

  std::optional<Inference> inference() const override { return image_inference(); }

  void infer(const InferenceRequest& request, const Settings& settings) const override {
    const std::int64_t units = units_of(settings);
    const auto build = [&](Graph& graph, std::int64_t classes, std::int64_t batch) {
      return resnet_classifier(graph, units, classes, batch);
    };
    infer_images(request, {resnet_use(settings, {}), EvaluateWith::kVariables,
                           resnet_modules(units), build});
  }

  std::vector<StepGraph> step_graphs(const Settings& settings) const override {
    const ResnetConfig config = resnet_config(settings, kResnetSteps);
    auto graph = std::make_unique<Graph>();
    const ResnetGraph resnet = build_resnet(*graph, config.units, config.batch, true);
    std::vector<StepGraph> steps;
    steps.push_back({"", std::move(graph), resnet_minimize(resnet, config), {resnet.precision}});
    return steps;
  }
};

}  // namespace

const Model& resnet_model() {
  static const ResnetModel model;
  return model;
}

}  // namespace paceline::models
