#include "models/cifar10.h"

#include <chrono>

#include "models/cifar10_graph.h"
#include "models/cifar10_recipe.h"
#include "models/image_hooks.h"
#include "models/image_inference.h"
#include "models/image_training.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

class Cifar10Model : public Model {
 public:
  Cifar10Model()
      : Model({.name = "cifar10",
               .summary = "two convolutions and three dense layers on images: 4.3 MB of parameters",
               .settings = cifar10_settings()}) {}

  void check(const Cluster& cluster, const RunOptions& run,
             const Settings& settings) const override {
    check_image_data(settings, cifar10_recipe(settings, run, cluster)->use(), cluster);
  }

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    const auto recipe = cifar10_recipe(settings, run, cluster);
    const ImageUse use = recipe->use();
    ImageInput input(settings, use, cluster);
    recipe->look_at(input);
    RunOptions limited = run;
    if (!run.steps && !run.seconds) limited.steps = recipe->steps();
    Graph graph;
    const TrainedImages trained = recipe->train_open(graph, input.classes());
    const auto feed = input.feed(trained.images, trained.labels);
    Session session(trained.training, cluster, limited,
                    {.unit = "images",
                     .model = "cifar10",
                     .watch = values_of(trained.terms),
                     .input = input.report(),
                     .data_names = input.names(),
                     .modules = trained.modules,
                     .shared_records = input.images()});
    session.add(ImagesPerSecond(trained.terms, use.batch)).add(ElapsedTime());
    if (recipe->few_steps()) session.add(Progress(std::chrono::minutes(1)));
    train_images(session, feed, input, recipe->classifier(trained, input.classes()),
                 recipe->evaluated(), evaluation_interval(settings, recipe->few_steps()));
  }

  std::vector<std::string> numbers() const override { return image_numbers(); }
  bool can_evaluate() const override { return true; }

  std::vector<std::string> evaluation_notes(const Settings& settings) const override {
    return image_notes(settings);
  }

  Evaluation evaluate(const RunOptions& run, const Settings& settings) const override {
    const auto recipe = cifar10_recipe(settings, run, {});
    const ImageUse use = recipe->use();
    const ImageInput input(settings, use, {});
    Graph graph;
    const TrainedImages trained = recipe->train_open(graph, input.classes());
    return evaluate_checkpoint(trained.training, recipe->classifier(trained, input.classes()),
                               input, recipe->evaluated(), run);
  }

  std::optional<Inference> inference() const override { return image_inference(); }

  void infer(const InferenceRequest& request, const Settings& settings) const override {
    const auto recipe = cifar10_recipe(settings, {}, {});
    Graph trained;
    const auto build = [&](Graph& graph, std::int64_t classes, std::int64_t batch) {
      return recipe->classify(graph, classes, batch);
    };
    infer_images(request, {recipe->use(), recipe->evaluated(),
                           recipe->train_open(trained, kCifar10Classes).modules, build});
  }

  std::optional<OnnxModel> onnx_model(const SavedShapes& saved) const override {
    return cifar10_inference(saved);
  }

  std::vector<StepGraph> step_graphs(const Settings& settings) const override {
    auto graph = std::make_unique<Graph>();
    const auto recipe = cifar10_recipe(settings, {}, {});
    const TrainedImages trained = recipe->train(*graph, recipe->use().batch, kCifar10Classes);
    std::vector<StepGraph> steps;
    steps.push_back({"", std::move(graph), trained.training, values_of(trained.terms)});
    return steps;
  }
};

}  // namespace

const Model& cifar10_model() {
  static const Cifar10Model model;
  return model;
}

}  // namespace paceline::models
