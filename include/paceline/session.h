// A session trains: it holds plans over shared variables, feeds them, and runs hooks.
#pragma once

#include <cstdint>
#include <functional>
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
#include "paceline/task_position.h"
#include "paceline/tensor.h"

namespace paceline {

class Hook;
class InputNormals;
class Session;

/// Fills the inputs of a plan before a step. Every input that the plan reads must be filled for
/// every step, unless it is kept; else the step throws kFailedPrecondition, naming the input.
class Feed {
 public:
  virtual ~Feed() = default;
  /// The memory of an input (or of a local variable), row-major: write the whole batch straight
  /// into it. Throws kNotFound when the plan's graph has no such input.
  virtual TensorView view(Value input) = 0;
  /// The same as its elements. Throws kInvalidArgument when T is not the input's element type,
  /// naming both.
  template <typename T>
  std::span<T> data(Value input) {
    check_type(input, kDTypeOf<T>);
    const TensorView memory = view(input);
    return {memory.as<T>(), std::size_t(memory.shape.elements())};
  }
  /// Fresh standard normal values; a function of (seed, input's name, task, step). Throws
  /// kInvalidArgument unless the input is float32.
  virtual Feed& normal(Value input) = 0;
  /// Copies. Throws kInvalidArgument when type or shape differ.
  virtual Feed& set(Value input, const Tensor& tensor) = 0;
  /// The input, filled for this step, keeps its values in later steps of the same plan until it is
  /// filled again. A plan is what a training steps with, or what one list of values is evaluated
  /// with.
  virtual Feed& keep(Value input) = 0;
  /// For an input that stays the same: the first call copies as `set` and keeps the values. Later
  /// calls with the same tensor copy nothing, so that what is written to it meanwhile is not seen;
  /// another tensor is copied.
  virtual Feed& set_once(Value input, const Tensor& tensor) = 0;
  /// Where the program is in its data once this batch is used. A feed function may read it and
  /// change it: in its first call it is what a checkpoint has restored, or empty. A checkpoint has
  /// the position of the last batch whose step was made, and never that of a batch read ahead.
  /// Changes in a call that stops count at once. In evaluations it is empty and nobody keeps it.
  virtual TaskPosition& position() = 0;
  /// No step is made; the session's run ends (an epoch is over, the data is used up).
  virtual void stop() = 0;
  /// The task's own step that this batch is for, from 0.
  virtual std::int64_t step() const = 0;
  /// The source of normal(), for feeds that are filled on another thread (prefetch).
  virtual std::shared_ptr<const InputNormals> normals() const = 0;

 private:
  static void check_type(Value input, DType asked);
};

/// What hooks see after each step.
struct StepResult {
  std::int64_t step = 0;                   // own steps made, of all trainings, this one included
  std::int64_t global_step = 0;            // of all workers
  double loss = 0;                         // of this step, before its update
  double seconds = 0;                      // wall time of this step, its input included
  double learning_rate = 0;                // of the first trained variable
  std::optional<double> global_norm = {};  // of the gradient, before clipping; of models that clip
  int training = 0;                        // which of the session's trainings made it
};

/// What an evaluation reads: the variables, or the moving averages of those that have one
/// (MinimizeOptions::average_decay).
enum class EvaluateWith : std::uint8_t {
  kVariables,  // as training left them
  kAverages,   // moving averages, where there are some
};

/// What a session may be told beside its graph, cluster and run.
struct SessionOptions {
  std::int64_t examples_per_step = 0;  // what examples_per_s counts; 0: the first input's dim. 0
  std::string unit = "examples";       // "words" for language models
  std::string model = "model";         // the report's "model"
  /// Called when a summary is written (Summaries): numbers of the model's own, by tag.
  std::function<std::vector<std::pair<std::string, double>>()> summarise = {};
  /// Values of the train graph to be read after each step (Session::value); with several trainings,
  /// after each step of one whose graph it is.
  std::vector<Value> watch = {};
  /// Training ends with an error at the first loss that is infinite or not a number (NanGuard),
  /// before other hooks see that step or a checkpoint is written of it. False: it goes on.
  bool nan_guard = true;
};

/// Used by one thread. Its steps throw the earliest error of the store: kUnavailable when a ps is
/// lost, kDeadlineExceeded. The report (RunOptions::report) is written when the session ends, with
/// "error" when a call threw.
class Session {
 public:
  /// The graphs of a session must outlive it.
  /// Alone: makes and initialises the variables. As a worker: connects to every ps; the chief
  /// initialises the variables there, the others wait until it has.
  Session(Training training, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  /// Several trainings over the same variables, of one graph or of several: each has its loss, its
  /// rules, schedules and clipping, and the variables that it trains; it may read those of the
  /// others. Steps are made one at a time, of whichever training is next: step(training, feed). All
  /// of them count as global steps. Throws kInvalidArgument when two trainings train one variable.
  Session(std::vector<Training> trainings, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  /// Trains nothing: only evaluates and fetches.
  Session(const Graph& graph, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Hooks run after each step in the order in which they were added; the session owns them.
  Session& add(std::unique_ptr<Hook> hook);
  /// The same for a hook by value.
  template <typename H>
  Session& add(H hook) {
    return add(std::unique_ptr<Hook>(std::make_unique<H>(std::move(hook))));
  }
  /// Another graph over the same variables (validation, test): all of its variables are in the
  /// graphs that the session was made with, else kInvalidArgument.
  Session& share(const Graph& graph);

  /// Steps until a hook, the feed or RunOptions end it; may be called again (the next epoch).
  /// False when training has ended for good: a hook said so, or steps or seconds are reached.
  /// A worker whose variables are read by rows asks for the next rows with each step: `feed` is
  /// then called for the next step before hooks see this one, and what it has filled in when a run
  /// is ended by a hook is what the next run begins with.
  bool run(const std::function<void(Feed&)>& feed);
  /// Makes one step as `run` does, with hooks, checkpoints, limits and interrupts; the two may be
  /// mixed. Nothing when no step was made: the feed stopped, or training has ended (ended()). To
  /// hooks, the steps up to that point, to the next `run` or to the end of the session are one run.
  /// `feed` is called for this step alone. What the program does between two steps counts as part
  /// of them, as what hooks do; evaluations count as no step's.
  std::optional<StepResult> step(const std::function<void(Feed&)>& feed);
  /// The same of one of several trainings, from 0 in the order in which they were given; `feed`
  /// fills the inputs of its graph. With several, `run` and the step without a number throw
  /// kFailedPrecondition. A checkpoint holds the variables of all trainings, and not whose turn it
  /// is: that follows from last_step().step, or is the program's to tell (on_save).
  std::optional<StepResult> step(int training, const std::function<void(Feed&)>& feed);
  /// True when the last `run` returned false, or `step` found or made the last step: training has
  /// ended for good. `step` then makes no more; `run` makes those that RunOptions still allow.
  bool ended() const;
  /// One step of a graph without updates; returns copies of the fetched values. Local variables of
  /// a shared graph change as in a step, those of a train graph do not. The variables' values
  /// are those that begin_evaluation read; the first evaluation calls it by itself, and so does the
  /// first one after each train step of this session.
  std::vector<Tensor> evaluate(const Graph& graph, std::span<const Value> fetches,
                               const std::function<void(Feed&)>& feed);
  /// As evaluate, without copies: the views are valid until the next step of the same graph.
  std::span<const TensorView> evaluate_in_place(const Graph& graph, std::span<const Value> fetches,
                                                const std::function<void(Feed&)>& feed);
  /// Any named value of any graph of the session; the train graph is searched first. Throws
  /// kNotFound with the nearest name when none of them has it.
  Tensor evaluate(std::string_view name, const std::function<void(Feed&)>& feed);
  /// One value of any graph of the session, its gradients() included. Throws kInvalidArgument when
  /// it is of another graph.
  Tensor evaluate(Value value, const std::function<void(Feed&)>& feed);
  /// Brings the newest variables from the store (other workers may have changed them), or their
  /// averages; evaluations use them until the next train step of this session.
  void begin_evaluation(EvaluateWith with = EvaluateWith::kVariables);
  /// As evaluate_in_place, but the variables are asked for in each step. Counts as a step in the
  /// report.
  std::span<const TensorView> fetch(const Graph& graph, std::span<const Value> fetches,
                                    const std::function<void(Feed&)>& feed);

  /// Value of a watched node after the last step; the tensor is renewed by each step.
  const Tensor& value(Value watched) const;
  /// Local variables of a graph back to zero (LSTM state at the start of an epoch).
  void reset_locals(const Graph& graph);
  /// A factor on all learning rates from the next step on; this worker's own, it travels with its
  /// contributions.
  void set_learning_rate_factor(double factor);

  /// Of this task; zeros before its first step.
  const StepResult& last_step() const;
  /// The graph that is trained, the first of several, or the one that the session was made with.
  const Graph& graph() const;
  /// With examples_per_step as it is.
  const SessionOptions& options() const;
  /// Seconds of all train steps so far by what they went to ("share" of docs/report.md), without
  /// evaluations.
  std::vector<std::pair<std::string, double>> seconds_spent();
  /// Reads all variables from the store, and calls `see` with name and value of each. Counts as an
  /// evaluation.
  void see_variables(const std::function<void(const std::string&, const Tensor&)>& see);
  /// Gives hooks (Summaries) a number of the model's own, of the global step as it is.
  void summarise(const std::string& tag, double value);
  /// As the session was made with.
  const RunOptions& run_options() const;
  /// Is this worker 0, or the only process?
  bool is_chief() const;
  /// From 0; 0 when alone.
  int worker_index() const;
  /// All workers of the job; 1 when alone.
  int workers() const;
  /// Where this task is in its data after the last step made, as its feed functions have told
  /// (Feed::position); before the first step what was restored.
  const TaskPosition& position() const;
  /// `tell` adds to position(), between two steps, whenever a checkpoint is begun; what it uses
  /// outlives the session. Local variables of its graphs are saved without being asked for.
  Session& on_save(std::function<void(TaskPosition&)> tell);
  /// What it told when the checkpoint that this task resumes from was written; empty when it begins
  /// anew, or was restarted in a job that went on: then last_step().step says how far it came.
  const TaskPosition& restored() const;
  /// Begins to save what is there now, on another thread, in RunOptions::out. Between two steps.
  /// False when nothing is begun: the last save is still under way, or this is not the chief, or
  /// there is no such folder. What goes wrong is said, and training goes on.
  bool begin_save();
  /// Saves what is there now, unless that is saved already, and waits for it. Throws what went
  /// wrong. Nothing where begin_save begins nothing. Done by itself when training ends for good.
  void save();
  /// Names of the shared variables, and a copy of the newest value of one. Throws kNotFound.
  std::vector<std::string> variable_names() const;
  Tensor variable(std::string_view name);  ///< A copy. Throws kNotFound.

  /// Says that this worker trains no more, and waits until all workers have said so or are gone.
  void finish_training();
  /// Adds to the report, e.g. report("perplexity", "train", 40.1); nullopt is null. A section
  /// "fetch/SHAPE" is the entry {"shape": SHAPE, …} of the list "fetch".
  void report(const std::string& section, const std::string& key, std::optional<double> value);

  /// A line for the user on standard output; none when RunOptions::quiet.
  void print(const std::string& line);
  /// On a terminal a line that the next one takes the place of, elsewhere as print.
  void print_progress(const std::string& line);

 private:
  friend class Evaluator;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
