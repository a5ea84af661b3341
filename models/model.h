// The model zoo: what `paceline train` can run, by name. Models see only include/paceline/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/minimize.h"
#include "paceline/predictor.h"
#include "paceline/program.h"
#include "paceline/run_options.h"

namespace paceline::models {

/// The graph of one step of a worker. The cost of the step follows from the graph, without running
/// it.
struct StepGraph {
  std::string section;  // the section of the report with this step's times; empty: no section
  std::unique_ptr<Graph> graph;
  std::optional<Training> training;  // empty: the step only computes `fetches`
  std::vector<Value> fetches = {};
};

/// For each variable, by name, the function with which a ps changes the variable's float32 values
/// after a worker has read them. The first argument of the function is the number of earlier reads.
/// The ps calls the function for one part of the values after the other, on any thread. The
/// function must not block.
using AfterReads = std::map<std::string, std::function<void(std::int64_t, std::span<float>)>>;

/// The shapes of the shared variables that a checkpoint holds, by their names.
using SavedShapes = std::map<std::string, Shape>;
/// The shape of `variable`. Throws kFailedPrecondition when the checkpoint does not have the
/// variable.
const Shape& saved_shape(const SavedShapes& saved, const std::string& variable);
/// The input and the results of Model::infer, for --help.
struct Inference {
  std::string about;  // "Classifies images: …"
  std::string data;   // what --data names
  bool top = false;   // true: infer() heeds InferenceRequest::top
};

/// The name of a model and the settings that its user can change.
struct ModelFacts {
  std::string_view name;     // "ptb"
  std::string_view summary;  // one line for --help
  /// The settings with their defaults. A model whose timed steps are no global steps has settings
  /// "steps" and "seconds", which end its timing.
  std::vector<AnySetting> settings;
};

class Model {
 public:
  virtual ~Model() = default;
  std::string_view name() const { return facts_.name; }
  std::string_view summary() const { return facts_.summary; }
  /// The settings of the model, with the values in `set` and defaults for the others. Throws
  /// kUsage, as --set does.
  Settings settings(const std::map<std::string, std::string>& set = {}) const;
  /// Throws kUsage, before any task is started, when the flags do not fit together.
  virtual void check(const Cluster& cluster, const RunOptions& run,
                     const Settings& settings) const = 0;
  /// Trains, as the only process or as a worker. If `run` has no limit, training ends at the
  /// model's default (mlp: 100,000 steps; ptb: the epochs of its size).
  virtual void run(const Cluster& cluster, const RunOptions& run,
                   const Settings& settings) const = 0;
  /// The functions with which each ps changes variables after a worker has read them.
  virtual AfterReads after_reads(const Settings&) const { return {}; }
  /// The names of the numbers that the evaluations of `run` give to Session::summarise.
  virtual std::vector<std::string> numbers() const { return {}; }
  /// True when evaluate() may be called.
  virtual bool can_evaluate() const { return false; }
  /// Evaluates the newest whole checkpoint in RunOptions::out, from a run with these settings.
  /// Throws kUsage when there is no data to evaluate with, and kFailedPrecondition when the
  /// checkpoint is of another model.
  virtual Evaluation evaluate(const RunOptions&, const Settings&) const { return {}; }
  /// Lines about the data of evaluate(), for the user.
  virtual std::vector<std::string> evaluation_notes(const Settings&) const { return {}; }
  /// Describes the trained model for write_onnx, with the sizes that the variables of a checkpoint
  /// have. Empty for a model that is of no use once it is trained. Throws as saved_shape does.
  virtual std::optional<OnnxModel> onnx_model(const SavedShapes&) const { return {}; }
  /// Describes infer(). Empty when the model has no useful results; then infer() must not be
  /// called.
  virtual std::optional<Inference> inference() const { return {}; }
  /// Gives results for new data with the values of a checkpoint, from a run with these settings.
  /// Throws kUsage, naming --data, when there is no data to read, kDataLoss when the data is not
  /// what it claims to be, and kFailedPrecondition when the checkpoint is of another model.
  virtual void infer(const InferenceRequest&, const Settings&) const {}
  /// The graphs of the steps that run() makes. Dry runs, predictions and `paceline explain` take
  /// the costs of steps from these graphs, without the data of the model. Throws kUsage.
  virtual std::vector<StepGraph> step_graphs(const Settings& settings) const = 0;

 protected:
  explicit Model(ModelFacts facts) : facts_(std::move(facts)) {}

 private:
  const ModelFacts facts_;
};

/// All models. model.cc has a list of them.
std::span<const Model* const> all_models();
/// The model of this name; null when there is none.
const Model* find_model(std::string_view name);

}  // namespace paceline::models
