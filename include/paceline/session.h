// A session trains: it holds plans over shared variables, feeds them, and runs hooks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/minimize.h"
#include "paceline/run_options.h"
#include "paceline/strategy.h"
#include "paceline/task_position.h"
#include "paceline/tensor.h"

namespace paceline {

class Hook;
class InputNormals;
class Prefetcher;
struct InputReport;
class Session;

/// Fills the inputs of a plan before a step. Every input that the plan reads must be filled for
/// every step, unless it is kept; else the step throws kFailedPrecondition, naming the input.
class Feed {
 public:
  virtual ~Feed() = default;
  /// The memory of an input (or of a local variable), row-major: write the whole batch straight
  /// into it. An open dimension has the size that another input of this batch gave it, else its
  /// usual one. Throws kNotFound when the plan's graph has no such input, and kFailedPrecondition
  /// when an open dimension has no size.
  virtual TensorView view(Value input) = 0;
  /// The memory of an input for a batch of this shape, which gives the open dimensions of the graph
  /// (Graph::open) their sizes; all inputs of a batch must agree on them. Throws kInvalidArgument,
  /// with both shapes, when `shape` does not fit the input, or a size is 0. In a graph with open
  /// dimensions only inputs can be filled.
  virtual TensorView view(Value input, const Shape& shape) = 0;
  /// The elements of view(input). Throws kInvalidArgument when T is not the input's element type,
  /// naming both.
  template <typename T>
  std::span<T> data(Value input) {
    check_type(input, kDTypeOf<T>);
    return elements_of<T>(view(input));
  }
  /// The elements of view(input, shape). Throws as that does, and as data(input) does.
  template <typename T>
  std::span<T> data(Value input, const Shape& shape) {
    check_type(input, kDTypeOf<T>);
    return elements_of<T>(view(input, shape));
  }
  /// Fills a float32 input with standard normal values, which are a function of (seed, name of the
  /// input, task, step). Throws kInvalidArgument unless the input is float32.
  virtual Feed& normal(Value input) = 0;
  /// Copies the tensor to the input; open dimensions take its sizes. Throws kInvalidArgument when
  /// type or shape differ.
  virtual Feed& set(Value input, const Tensor& tensor) = 0;
  /// Makes the input, which is filled for this step, keep its values in later steps of the same
  /// plan until it is filled again. Each training has a plan of its own, and so has each list of
  /// values that is evaluated.
  virtual Feed& keep(Value input) = 0;
  /// Sets an input that stays the same. The first call copies `tensor` as `set` does, and keeps the
  /// values. Later calls with the same tensor copy nothing, so that changes of its elements are not
  /// seen; another tensor is copied.
  virtual Feed& set_once(Value input, const Tensor& tensor) = 0;
  /// The program's place in its data once this batch is used, which a feed function may read and
  /// change. In the first call it is the place that a checkpoint has restored, or empty. A
  /// checkpoint has the position of the last batch whose step was made, and never that of a batch
  /// read ahead. Changes in a call that stops count at once. In evaluations the position is empty,
  /// and nobody keeps it.
  virtual TaskPosition& position() = 0;
  /// True if the batch is for an evaluation or a fetch, which have no position in the data.
  virtual bool evaluates() const { return false; }
  /// Ends the session's run without another step, because an epoch is over or the data is used up.
  virtual void stop() = 0;
  /// The number of the task's batch, from 0, which is its own step. With towers (Cluster::towers) a
  /// feed function is called once for each tower, in order, before the step that they make
  /// together. The number is then the own step times the number of towers, plus the tower's index.
  virtual std::int64_t step() const = 0;
  /// The records that the job shares out among its workers, for a pipeline (Pipeline::share_out);
  /// null where it shares out none.
  virtual std::shared_ptr<RecordBlocks> record_blocks() const { return nullptr; }

 private:
  friend class Prefetcher;
  /// The source of normal(), for feeds that are filled on another thread (prefetch).
  virtual std::shared_ptr<const InputNormals> normals() const = 0;
  static void check_type(Value input, DType asked);
  template <typename T>
  static std::span<T> elements_of(const TensorView& memory) {
    return {memory.as<T>(), std::size_t(memory.shape.elements())};
  }
};

/// The numbers of a step, which hooks see after it. A step of towers is one step.
struct StepResult {
  /// The number of this task's steps in all trainings, this one included.
  std::int64_t step = 0;
  std::int64_t global_step = 0;  // of all workers
  /// The loss of this step, before its update; with towers, the mean over them.
  double loss = 0;
  double seconds = 0;        // wall time of this step, its input included
  double learning_rate = 0;  // of the first trained variable
  /// The gradient's norm before clipping; empty for models that do not clip.
  std::optional<double> global_norm = {};
  int training = 0;      // the index of the session's training that made the step
  bool skipped = false;  // nothing of it was applied, since it had NaN or infinity (--on-nan skip)
};

/// The values that an evaluation reads: the variables, or the moving averages of those that have
/// one (MinimizeOptions::average_decay).
enum class EvaluateWith : std::uint8_t {
  kVariables,  // the variables as training left them
  kAverages,   // moving averages, where there are some
};

/// The mode of a run, which says what `dropout` computes, and `batch_norm` with variables of its
/// own: they do something else while a model trains. Train steps are made in kTrain.
enum class Mode : std::uint8_t {
  kInfer,  // dropout passes its input on; batch_norm takes its moving statistics
  kTrain,  // dropout drops; batch_norm takes the statistics of the batch
};

/// The options of a session.
struct SessionOptions {
  /// The number of examples (or words) of one batch; each tower has a batch of its own.
  /// examples_per_s follows from it, and it is the weight of a contribution beside those of other
  /// workers, towers and accumulated batches. 0 takes dimension 0 of the first input. The number
  /// may be an open dimension, such as batch * time, which then has its size in each batch.
  std::int64_t examples_per_step = 0;
  std::string unit = "examples";  // "words" for language models
  std::string model = "model";    // the report's "model"
  /// The session calls it between two steps, when a summary is written (Summaries) and when a live
  /// page shows the run (DashboardOptions). It returns numbers of the model by tag.
  std::function<std::vector<std::pair<std::string, double>>()> summarise = {};
  /// Values of the train graph to be read after each step (Session::value); with several trainings,
  /// after each step of a training whose graph has the value. With towers, a float32 value of one
  /// element is the mean over the towers; any other value is tower 0's.
  std::vector<Value> watch = {};
  /// It returns the numbers of the training input's pipeline so far, for the report and the last
  /// lines, which say when it limits training (PipelineFeed::report). It is called on the session's
  /// thread.
  std::function<InputReport()> input = {};
  /// The names that the numbers of the data stand for: "classes" by label, "words" by id, or what
  /// else a value of the data depends on. Checkpoints keep them. A session does not go on from a
  /// checkpoint with other names (kFailedPrecondition), and names the first difference; nor does a
  /// worker join a job whose chief has others.
  std::map<std::string, std::vector<std::string>> data_names = {};
  /// The PyTorch modules of the variables by their scopes, for `paceline export` and for
  /// RunOptions::init_from: {"stage1/unit1", "units.0"}. A scope within one of these keeps its own
  /// name, and so does a scope that is not listed: "layer1/w" is "layer1.weight". A layer of
  /// nn.LSTM has a star: {"lstm1", "lstm.*_l0"}. Checkpoints keep them (docs/checkpoint.md).
  std::map<std::string, std::string> modules = {};
  /// More facts, by name, on which all workers must agree, such as the version of a framework that
  /// computes the model: {"torch", "2.5.1"}. A worker with another value than the chief's does not
  /// join. Checkpoints do not keep them.
  std::map<std::string, std::string> agreed = {};
  /// The number of records, or batches, that the job shares out among its workers (--shard
  /// dynamic); 0: not told. A worker joins only if it has as many as the chief.
  std::int64_t shared_records = 0;
  /// True: training ends with an error at the first loss that is infinite or not a number
  /// (NanGuard), before other hooks see that step or a checkpoint is written of it. False: training
  /// goes on.
  bool nan_guard = true;
};

/// The shared variables of a session (Session::variables), which must outlive it. All functions are
/// called between two steps.
class SharedVariables {
 public:
  /// Their scoped names, in the order in which the graphs of the session make them.
  std::vector<std::string> names() const;
  /// A copy of the newest value. Throws kNotFound with the nearest name when none has this name.
  Tensor get(std::string_view name) const;
  /// Makes `value` the value of a variable; the slots of its rule stay as they are. Checkpoints
  /// have it from the next step on. Throws kNotFound, kInvalidArgument with both sides when the
  /// type or the shape is another one, and kFailedPrecondition in a job of several tasks. There
  /// Initializer::values or RunOptions::init_from give variables other initial values, and
  /// contributions alone change them.
  void set(std::string_view name, const Tensor& value);
  /// Writes the newest values to the safetensors file `path`, named and laid out as PyTorch modules
  /// have them (SessionOptions::modules), as `paceline export` does. RunOptions::init_from,
  /// Predictor and load() take the file. Throws when the file cannot be written; then there is no
  /// new file.
  void save(const std::string& path) const;
  /// Sets all variables from `checkpoint`, which is named as for RunOptions::init_from; the slots
  /// stay as they are. Throws kNotFound when there is none, and kFailedPrecondition with a line for
  /// each variable that does not fit (nothing is set then), and in a job of several tasks.
  void load(const std::string& checkpoint);

 private:
  friend class Session;
  explicit SharedVariables(Session& session) : session_(&session) {}
  Session* session_;
};

/// A session trains on one thread. Its steps throw the earliest error of the store: kAborted when a
/// ps is lost with its values (run_program then makes a new session, which goes on from the newest
/// checkpoint), kUnavailable when a task refuses or cannot be reached, kDeadlineExceeded when a
/// wait takes too long. The report (RunOptions::report) is written when the session ends, with
/// "error" when a call threw.
class Session {
 public:
  /// The graphs of a session must outlive it. A process that is alone makes and initialises the
  /// variables. A worker connects to every ps; the chief initialises the variables there, and the
  /// others wait until it has done so.
  Session(Training training, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  /// A session of several trainings over the same variables, of one graph or of several. Each
  /// training has its loss, its rules, schedules and clipping, and the variables that it trains; it
  /// may read those of the others. The program makes steps of one training at a time, in any order:
  /// step(training, feed). All of them count as global steps. Throws kInvalidArgument when two
  /// trainings train one variable.
  Session(std::vector<Training> trainings, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  /// A session that trains nothing, and only evaluates and fetches.
  Session(const Graph& graph, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Adds a hook, by value or as a std::unique_ptr. Hooks run after each step in the order in which
  /// they were added; the session owns them.
  template <typename H>
  Session& add(H hook) {
    if constexpr (std::is_convertible_v<H, std::unique_ptr<Hook>>) {
      add_hook(std::move(hook));
    } else {
      add_hook(std::make_unique<H>(std::move(hook)));
    }
    return *this;
  }
  /// Adds another graph over the same variables, for validation or test. Throws kInvalidArgument
  /// when one of its variables is in none of the graphs that the session was made with.
  Session& share(const Graph& graph);

  /// Makes steps until a hook, the feed or RunOptions end the run. It may be called again (the next
  /// epoch). Returns false when training has ended for good: a hook said so, or steps or seconds
  /// are reached.
  /// In two cases `feed` is called for the next step before hooks see this one: a worker whose
  /// variables are read by rows asks for the next rows with each step, and towers find their next
  /// batches filled when a step ends. If a hook then ends the run, the next run begins with what
  /// `feed` has filled in. During such a call `feed` may not call the session; with towers, it can
  /// only fill inputs.
  bool run(const std::function<void(Feed&)>& feed);
  /// Makes one step as `run` does, with hooks, checkpoints, limits and interrupts. The two may be
  /// mixed. Returns nothing when no step was made, because the feed stopped or training has ended
  /// (ended()). For hooks, steps in a row are one run, which ends there, at the next `run`, or at
  /// the end of the session. `feed` is called for this step alone. The time of the program between
  /// two steps counts as theirs, like the time of hooks; evaluations belong to no step.
  std::optional<StepResult> step(const std::function<void(Feed&)>& feed);
  /// Makes one step of training number `training`, from 0 in the order in which they were given;
  /// `feed` fills the inputs of its graph. With several trainings, `run` and the step without a
  /// number throw kFailedPrecondition. A checkpoint holds the variables of all trainings, and not
  /// whose turn it is: the program finds the turn by last_step().step, or saves it (on_save).
  std::optional<StepResult> step(int training, const std::function<void(Feed&)>& feed);
  /// True when training has ended for good: the last `run` returned false, or `step` made the last
  /// step or found that it was made. `step` then makes no more steps; `run` makes those that
  /// RunOptions still allow.
  bool ended() const;
  /// Makes one step of a graph without updates, in the mode that is given, and returns copies of
  /// the fetched values. Local variables of a shared graph change as in a step; those of a train
  /// graph do not. The variables have the values that begin_evaluation read. The first evaluation
  /// calls begin_evaluation by itself, and so does the first one after each train step of this
  /// session.
  std::vector<Tensor> evaluate(const Graph& graph, std::span<const Value> fetches,
                               const std::function<void(Feed&)>& feed, Mode mode = Mode::kInfer);
  /// Does the same as evaluate without copies. The views are valid until the next step of the same
  /// graph.
  std::span<const TensorView> evaluate_in_place(const Graph& graph, std::span<const Value> fetches,
                                                const std::function<void(Feed&)>& feed,
                                                Mode mode = Mode::kInfer);
  /// Evaluates any named value of any graph of the session; the train graph is searched first.
  /// Throws kNotFound with the nearest name when none of them has it.
  Tensor evaluate(std::string_view name, const std::function<void(Feed&)>& feed,
                  Mode mode = Mode::kInfer);
  /// Evaluates one value of any graph of the session, its gradients() included. Throws
  /// kInvalidArgument when it is of another graph.
  Tensor evaluate(Value value, const std::function<void(Feed&)>& feed, Mode mode = Mode::kInfer);
  /// Brings the newest variables from the store (other workers may have changed them), or their
  /// averages; evaluations use them until the next train step of this session.
  void begin_evaluation(EvaluateWith with = EvaluateWith::kVariables);
  /// Reads the variables of a checkpoint instead, for example the best one of this run, to which
  /// early stopping returns: begin_evaluation(run.out + ":best"). `checkpoint` is named as for
  /// RunOptions::init_from. One process waits until the newest checkpoint is written; in a job of
  /// several tasks save() does. Throws kNotFound when there is none.
  void begin_evaluation(const std::string& checkpoint,
                        EvaluateWith with = EvaluateWith::kVariables);
  /// Does the same as evaluate_in_place, but asks the store for the variables in each step. It
  /// counts as a step in the report.
  std::span<const TensorView> fetch(const Graph& graph, std::span<const Value> fetches,
                                    const std::function<void(Feed&)>& feed);

  /// The value of a watched node after the last step. Each step renews the tensor.
  const Tensor& value(Value watched) const;
  /// Sets the local variables of a graph to zero, such as LSTM state at the start of an epoch.
  void reset_locals(const Graph& graph);
  /// Sets a factor on all learning rates from the next step on. The factor is this worker's own and
  /// travels with its contributions.
  void set_learning_rate_factor(double factor);

  /// The last step of this task; zeros before its first.
  const StepResult& last_step() const;
  /// Gives hooks (Summaries) a number of the model, for the current global step. If `tag` is the
  /// one of RunOptions::keep_best, the number belongs to the checkpoint that was evaluated last: by
  /// this session since its last step, or by the Evaluator whose values were taken last. If there
  /// is no such checkpoint, the number belongs to the present values, which are then saved.
  void summarise(const std::string& tag, double value);
  /// The job that the session was made with: Cluster::is_chief(), workers() and task.
  const Cluster& cluster() const;
  /// The run options that the session was made with.
  const RunOptions& run_options() const;
  /// False when an observer wanted no more than the plan (SessionObserver::planned), as in a dry
  /// run: nothing was started, and nothing will be. Training has ended before its first step, all
  /// values are zeros, feed functions and hooks are not called, and nothing is printed or written.
  /// A program that writes results of its own asks this first.
  bool started() const;
  /// This task's place in its data after the last step made, as its feed functions have told it
  /// (Feed::position). Before the first step it is the place of the checkpoint from which the task
  /// resumes. It is empty when the task begins anew, or was restarted in a job that went on; then
  /// last_step().step says how far the task got.
  const TaskPosition& position() const;
  /// The session calls `tell`, between two steps, whenever it begins a checkpoint, so that `tell`
  /// adds to position(). What `tell` uses must outlive the session. Local variables of the
  /// session's graphs are saved without `tell`.
  Session& on_save(std::function<void(TaskPosition&)> tell);
  /// Saves the state between two steps, unless it is saved already, and waits until that is done.
  /// Throws when the save fails. Only the chief saves, and only if RunOptions::out is not empty.
  /// The session does this by itself when training ends for good.
  void save();
  /// The shared variables, to be read, set, saved and loaded between two steps.
  SharedVariables variables();

  /// Ends training for all workers of the job, as a limit of steps does, for example from a hook of
  /// the chief whose evaluation says that enough is learnt. This worker begins no further step.
  /// Another worker begins none once it has heard of the end, so that it may make one or two more;
  /// its `run` then returns false. In one process, the call ends the training of this session.
  void stop_all();
  /// Says that this worker trains no more, and waits until all other workers have said so or are
  /// lost.
  void finish_training();
  /// Adds to the report, e.g. report("perplexity", "train", 40.1); nullopt is null. A section
  /// "fetch/SHAPE" is the entry {"shape": SHAPE, …} of the list "fetch".
  void report(const std::string& section, const std::string& key, std::optional<double> value);

  /// Prints a line for the user on standard output, unless RunOptions::quiet is set.
  void print(const std::string& line);

 private:
  friend class Evaluator;
  friend class SessionInside;
  friend class SharedVariables;
  class Impl;
  void add_hook(std::unique_ptr<Hook> hook);
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
