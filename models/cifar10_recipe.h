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
  std::map<std::string, std::string> modules;  // SessionOptions'
};

class Cifar10Recipe {
 public:
  virtual ~Cifar10Recipe() = default;
  virtual ImageUse use() const = 0;
  /// Reads the facts of the data on which initial values depend. Without this call, the initial
  /// values are of no use.
  virtual void look_at(const ImageInput& /*input*/) {}
  /// The global step at which training ends.
  virtual std::int64_t steps() const = 0;
  virtual TrainedImages train(Graph& graph, std::int64_t classes) const = 0;
  /// Returns what evaluations compute of the graph that is trained.
  virtual Classifier classifier(const TrainedImages& trained, std::int64_t /*classes*/) const {
    return {trained.images, trained.logits};
  }
  /// Adds to a graph only what classifier() returns, for batches of `batch` images.
  virtual Classifier classify(Graph& graph, std::int64_t classes, std::int64_t batch) const = 0;
  /// The values that classifiers are meant for.
  virtual EvaluateWith evaluated() const = 0;
  /// True for a recipe of few and long steps. Its line shows the time that is left, and only the
  /// last values are evaluated unless the user says otherwise.
  virtual bool few_steps() const { return false; }
};

/// The global steps in which the recipe `fast` sees each of `images` images 8 times.
std::int64_t fast_steps(std::int64_t images, std::int64_t batch, const Cluster& cluster);

/// Returns Model::onnx_model of the recipe whose variables have these shapes.
OnnxModel cifar10_inference(const SavedShapes& saved);

/// The settings of all recipes.
std::vector<AnySetting> cifar10_settings();
/// Returns the recipe that the settings name. Throws kUsage when the recipe does not have one of
/// the given settings.
std::unique_ptr<Cifar10Recipe> cifar10_recipe(const Settings& settings, const RunOptions& run,
                                              const Cluster& cluster);

}  // namespace paceline::models
