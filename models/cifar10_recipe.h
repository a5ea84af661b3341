// The ways to train `cifar10`, by the names that --recipe takes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/image_hooks.h"
#include "models/image_training.h"
#include "paceline/cluster.h"
#include "paceline/minimize.h"
#include "paceline/program.h"
#include "paceline/run_options.h"

namespace paceline::models {

/// The graph that is trained, for batches of any size.
struct TrainedImages {
  Value images, labels, logits;
  std::vector<LossTerm> terms;
  Training training;
  std::map<std::string, std::string> modules;  // for SessionOptions::modules
};

class Cifar10Recipe {
 public:
  virtual ~Cifar10Recipe() = default;
  virtual ImageUse use() const = 0;
  /// Reads from the data what the initial values and the number of steps depend on. A graph that is
  /// to be trained from its initial values needs this call.
  virtual void look_at(const ImageInput& /*input*/) {}
  /// The global step at which training ends.
  virtual std::int64_t steps() const = 0;
  /// Adds the model to a graph. `batch` is the number of images in a batch, or an open dimension.
  virtual TrainedImages train(Graph& graph, std::int64_t batch, std::int64_t classes) const = 0;
  /// Does so with an open batch, for a graph that trains and evaluates.
  TrainedImages train_open(Graph& graph, std::int64_t classes) const {
    return train(graph, graph.open("batch", use().batch), classes);
  }
  /// Returns the classifier for evaluations, as values of the graph that is trained.
  virtual Classifier classifier(const TrainedImages& trained, std::int64_t /*classes*/) const {
    return {trained.images, trained.logits};
  }
  /// Adds only the classifier to a graph, for batches of `batch` images.
  virtual Classifier classify(Graph& graph, std::int64_t classes, std::int64_t batch) const = 0;
  /// Evaluations take these values: the variables, or their moving averages.
  virtual EvaluateWith evaluated() const = 0;
  /// True for a recipe of few and long steps. The model then prints the time that is left, and by
  /// default evaluates only at the end of training.
  virtual bool few_steps() const { return false; }
};

/// The number of global steps in which the recipe `fast` sees each of `images` images 8 times, at
/// least 1. `batch` is the batch of one tower.
std::int64_t fast_steps(std::int64_t images, std::int64_t batch, const Cluster& cluster);

/// Returns the result of Model::onnx_model for a checkpoint with these variables, of either recipe.
OnnxModel cifar10_inference(const SavedShapes& saved);

/// The settings of all recipes.
std::vector<AnySetting> cifar10_settings();
/// Returns the recipe that the settings name. Throws kUsage when a setting was given that the
/// recipe does not have.
std::unique_ptr<Cifar10Recipe> cifar10_recipe(const Settings& settings, const RunOptions& run,
                                              const Cluster& cluster);

}  // namespace paceline::models
