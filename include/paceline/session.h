// A session trains: it holds plans over shared variables, feeds them, and runs hooks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/minimize.h"
#include "paceline/tensor.h"

namespace paceline {

class Hook;
class Session;

/// Fills the inputs of a plan before a step.
class Feed {
 public:
  virtual ~Feed() = default;
  /// The memory of an input (or of a local variable): write the batch straight into it.
  virtual TensorView view(Value input) = 0;
  template <typename T>
  std::span<T> data(Value input) {
    const TensorView v = view(input);
    return {v.as<T>(), std::size_t(v.shape.elements())};
  }
  /// Fresh standard normal values; a function of (seed, input, task, step).
  virtual Feed& normal(Value input) = 0;
  /// Copies. Throws kInvalidArgument when type or shape differ.
  virtual Feed& set(Value input, const Tensor& tensor) = 0;
  /// No step is made; the session's run ends (an epoch is over, the data is used up).
  virtual void stop() = 0;
  /// The task's own step that this batch is for, from 0.
  virtual std::int64_t step() const = 0;
};

/// What hooks see after each step.
struct StepResult {
  std::int64_t step = 0;         // own steps made, this one included
  std::int64_t global_step = 0;  // of all workers
  double loss = 0;
  double seconds = 0;            // wall time of this step
};

struct SessionOptions {
  std::int64_t examples_per_step = 0;   // what examples_per_s counts; 0: the first input's dimension 0
  std::string unit = "examples";        // "words" for language models
  std::string model = "model";          // the report's "model"
  /// Named values of the train graph to be read after each step (session.value).
  std::vector<Value> watch;
  /// Which rows of sparse variables a batch reads is found from these inputs: by default from the
  /// embedding look-ups of the train graph.
};

class Session {
 public:
  Session(Training training, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Hooks run after each step in the order in which they were added; the session owns them.
  Session& add(std::unique_ptr<Hook> hook);
  template <typename H>
  Session& add(H hook) {
    return add(std::unique_ptr<Hook>(std::make_unique<H>(std::move(hook))));
  }
  /// Another graph over the same variables (validation, test). It must outlive the session; call
  /// before the first step.
  Session& share(const Graph& graph);

  /// Steps until a hook, the feed or RunOptions end it; may be called again (the next epoch).
  /// False when training has ended for good (steps or seconds reached).
  bool run(const std::function<void(Feed&)>& feed);
  /// One step of another shared graph, or of the train graph without updates; returns the fetched
  /// values. The variables are read from the store by begin_evaluation.
  std::vector<Tensor> evaluate(const Graph& graph, std::span<const Value> fetches,
                               const std::function<void(Feed&)>& feed);
  /// Any named value of any graph of the session.
  Tensor evaluate(std::string_view name, const std::function<void(Feed&)>& feed);
  /// Brings the newest variables from the store; the evaluations that follow use them.
  void begin_evaluation();
  /// The variables are asked for in each step instead (workload `fetch`).
  std::vector<Tensor> fetch(const Graph& graph, std::span<const Value> fetches,
                            const std::function<void(Feed&)>& feed);

  /// Value of a watched node after the last step.
  const Tensor& value(Value watched) const;
  /// Local variables of a graph back to zero (LSTM state at the start of an epoch).
  void reset_locals(const Graph& graph);
  /// A factor on all learning rates from the next step on; this worker's own, it travels with its
  /// contributions.
  void set_learning_rate_factor(double factor);

  const StepResult& last_step() const;
  bool is_chief() const;
  int worker_index() const;
  int workers() const;
  /// Says that this worker trains no more, and waits until all workers have said so or are gone.
  void finish_training();
  /// Adds to the report's JSON for this task, e.g. report("perplexity", {{"train", 40.1}}).
  void report(const std::string& section, const std::string& key, std::optional<double> value);
};

}  // namespace paceline
