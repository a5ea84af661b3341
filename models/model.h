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
#include "paceline/run_options.h"

namespace paceline::models {

/// What --set can change.
struct HyperParameter {
  std::string name;
  std::string default_text;  // what it is without --set; may depend on --size: then it says so
  std::string help;
};

/// Flags of `paceline train MODEL` that are the model's business. A flag that a model does not know
/// must be unset; see Model::flags.
struct ModelOptions {
  std::optional<std::int64_t> batch = {};       // --batch
  std::optional<std::int64_t> epochs = {};      // --epochs
  std::string data = {};                        // --data DIR
  std::string size = "small";                   // ptb --size
  std::optional<std::int64_t> hidden = {};      // mlp, fetch --hidden
  std::optional<std::int64_t> features = {};    // fetch --features
  bool constant = false;                        // fetch --constant
  std::map<std::string, std::string> set = {};  // --set name=value, in any order
};

/// What one step of a worker computes: for what can be known of it without running it.
struct StepGraph {
  std::string section;  // of the report that has this step's times; empty: the report itself
  std::unique_ptr<Graph> graph;
  std::optional<Training> training;  // none: nothing is updated, `fetches` is computed
  std::vector<Value> fetches = {};
};

/// What a ps does to a variable once a worker has read it, by the variable's name: it changes the
/// values, of float32. `time` says how often they were read before. It is called for one part of
/// the values after the other, on any thread, and must not block.
using AfterReads = std::map<std::string, std::function<void(std::int64_t, std::span<float>)>>;

/// What a model is called and what it takes.
struct ModelFacts {
  std::string_view name;     // "ptb"
  std::string_view summary;  // one line for --help
  /// Which of ModelOptions' flags it takes: of "batch", "epochs", "data", "size", "hidden",
  /// "features", "constant". The command offers only these. "steps" and "seconds", which every
  /// model takes: it times steps that are not global ones, and these flags end its timing.
  std::vector<std::string_view> flags;
  std::span<const HyperParameter> hyper_parameters;  // of static memory
};

class Model {
 public:
  virtual ~Model() = default;
  std::string_view name() const { return facts_.name; }
  std::string_view summary() const { return facts_.summary; }
  std::span<const std::string_view> flags() const { return facts_.flags; }
  std::span<const HyperParameter> hyper_parameters() const { return facts_.hyper_parameters; }
  /// Refuses what cannot be, before any task is started. Throws Error kUsage that names the flag
  /// and what is allowed (or the nearest hyper-parameter).
  virtual void check(const Cluster& cluster, const RunOptions& run,
                     const ModelOptions& options) const = 0;
  /// Trains, as the only process or as a worker. What is missing from `run` takes the model's
  /// default (mlp: 100,000 steps; ptb: the epochs of its size).
  virtual void run(const Cluster& cluster, const RunOptions& run,
                   const ModelOptions& options) const = 0;
  /// What each ps of the program does to the variables that `run` reads. Throws kUsage.
  virtual AfterReads after_reads(const ModelOptions&) const { return {}; }
  /// The graphs whose steps `run` times. Throws kUsage.
  virtual std::vector<StepGraph> step_graphs(const ModelOptions& options) const = 0;

 protected:
  explicit Model(ModelFacts facts) : facts_(std::move(facts)) {}

 private:
  const ModelFacts facts_;
};

/// mlp, ptb, fetch: one line each in model.cc.
std::span<const Model* const> all_models();
/// Throws kUsage "unknown model 'ptp': did you mean ptb? (mlp, ptb, fetch)".
const Model& find_model(std::string_view name);

}  // namespace paceline::models
