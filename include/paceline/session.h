// A session trains: it makes plans over shared variables, fills their inputs, runs them and calls
// hooks.
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
/// every step, unless keep() or set_once() keeps its values. Otherwise the step throws
/// kFailedPrecondition, naming the input.
class Feed {
 public:
  virtual ~Feed() = default;
  /// The memory of an input (or of a local variable), row-major: write the whole batch straight
  /// into it. An open dimension has the size that another input of this batch gave it, else its
  /// usual size. Throws kNotFound when the plan's graph has no such input, and kFailedPrecondition
  /// when an open dimension has no size.
  virtual TensorView view(Value input) = 0;
  /// The memory of an input for a batch of this shape, which gives the open dimensions of the graph
  /// (Graph::open) their sizes; all inputs of a batch must agree on these sizes. Throws
  /// kInvalidArgument, with both shapes, when `shape` does not fit the input, or a size is 0. In a
  /// graph with open dimensions only inputs can be filled.
  virtual TensorView view(Value input, const Shape& shape) = 0;
  /// The elements of view(input). Throws kInvalidArgument when T is not the input's element type,
  /// naming both.
  template <typename T>
  std::span<T> data(Value input) {
    check_type(input, kDTypeOf<T>);
    return elements_of<T>(view(input));
  }
  /// The elements of view(input, shape). Throws what view(input, shape) and data(input) throw.
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
  /// Makes an input that is filled for this step keep its values in later steps of the same plan,
  /// until the input is filled again. Each training has a plan of its own, and so has each list of
  /// values that is evaluated.
  virtual Feed& keep(Value input) = 0;
  /// Sets an input whose values stay the same. The first call copies `tensor` as `set` does, and
  /// keeps the values. Later calls with the same tensor copy nothing, so changes of its elements
  /// have no effect. A call with another tensor copies that tensor.
  virtual Feed& set_once(Value input, const Tensor& tensor) = 0;
  /// The program's place in its data once this batch is used. A feed function may read and change
  /// the position. In the first call the position is the one that a checkpoint has restored, or
  /// empty. A checkpoint has the position of the last batch whose step was made, never that of a
  /// batch read ahead. If a feed function calls stop(), its changes of the position count at once.
  /// In evaluations the position is empty and is not kept.
  virtual TaskPosition& position() = 0;
  /// True if the batch is for an evaluation or a fetch, and so has no position in the data.
  virtual bool evaluates() const { return false; }
  /// Ends the session's run without another step, because an epoch is over or the data is used up.
  virtual void stop() = 0;
  /// The number of the batch, from 0, which is the number of this task's own step. With towers
  /// (Cluster::towers) a feed function is called once for each tower, in order, before the step
  /// that they make together. The number of the batch is then the own step times the number of
  /// towers, plus the index of the tower.
  virtual std::int64_t step() const = 0;
  /// The records that the job shares out among its workers, for a pipeline (Pipeline::share_out);
  /// null if the job shares out no records.
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

/// The numbers of a step, which hooks see after the step. A step of several towers counts as one
/// step.
struct StepResult {
  /// The number of this task's steps in all trainings, this one included.
  std::int64_t step = 0;
  std::int64_t global_step = 0;  // counts the steps of all workers
  /// The loss of this step, computed before the update; with towers, the mean over the towers.
  double loss = 0;
  double seconds = 0;        // wall time of this step, its input included
  double learning_rate = 0;  // of the first trained variable
  /// The gradient's norm before clipping; empty for models that do not clip.
  std::optional<double> global_norm = {};
  int training = 0;  // the index of the session's training that made the step
  /// True when nothing of this step was applied, since it had NaN or infinity (--on-nan skip).
  bool skipped = false;
};

/// The values that an evaluation reads: the variables, or the moving averages of those that have
/// one (MinimizeOptions::average_decay).
enum class EvaluateWith : std::uint8_t {
  kVariables,  // the variables as training left them
  kAverages,   // moving averages, where there are some
};

/// The mode of a step decides what `dropout` computes, and what `batch_norm` with its own variables
/// computes. Train steps are made in kTrain.
enum class Mode : std::uint8_t {
  kInfer,  // dropout passes its input on; batch_norm takes its moving statistics
  kTrain,  // dropout drops; batch_norm takes the statistics of the batch
};

/// The options of a session.
struct SessionOptions {
  /// The number of examples (or words) of one batch; each tower has a batch of its own. The
  /// report's examples_per_s counts this number, and means over workers, towers and accumulated
  /// batches weight each contribution by it. 0: dimension 0 of the first input. The number may be
  /// an open dimension or a product of some, such as batch * time; it then has the size of each
  /// batch.
  std::int64_t examples_per_step = 0;
  std::string unit = "examples";  // "words" for language models
  std::string model = "model";    // the report's "model"
  /// Returns numbers of the model by tag. The session calls the function between two steps, when a
  /// summary is written (Summaries) and when a live page shows the run (DashboardOptions).
  std::function<std::vector<std::pair<std::string, double>>()> summarise = {};
  /// Values of the train graph that Session::value returns after each step; with several trainings,
  /// after each step of a training whose graph has the value. With towers, a float32 value of one
  /// element is the mean over the towers; any other value is tower 0's.
  std::vector<Value> watch = {};
  /// Returns the numbers of the training input's pipeline so far (PipelineFeed::report). They go
  /// into the report, and the last lines of the run say when the pipeline limits training. The
  /// session calls the function on its own thread.
  std::function<InputReport()> input = {};
  /// The names that the numbers of the data stand for, such as "classes" by label and "words" by
  /// id, or anything else on which the values of the data depend. Checkpoints keep these names. A
  /// session does not go on from a checkpoint with other names: it throws kFailedPrecondition,
  /// naming the first difference. A worker does not join a job whose chief has other names.
  std::map<std::string, std::vector<std::string>> data_names = {};
  /// The PyTorch modules of the variables by their scopes, for `paceline export` and for
  /// RunOptions::init_from: {"stage1/unit1", "units.0"}. A scope within a listed scope keeps its
  /// own name, and so does a scope that is not listed: "layer1/w" is "layer1.weight". The module of
  /// a layer of nn.LSTM has a star: {"lstm1", "lstm.*_l0"}. Checkpoints keep these names
  /// (docs/checkpoint.md).
  std::map<std::string, std::string> modules = {};
  /// More facts, by name, on which all workers must agree, such as the version of a framework that
  /// computes the model: {"torch", "2.5.1"}. A worker with another value than the chief's does not
  /// join. Checkpoints do not keep these facts.
  std::map<std::string, std::string> agreed = {};
  /// The number of records, or batches, that the job shares out among its workers (--shard
  /// dynamic); 0: the number is not given. A worker joins only if its number is that of the chief.
  std::int64_t shared_records = 0;
  /// True: training ends with an error at the first loss that is infinite or not a number
  /// (NanGuard), before other hooks see that step and before a checkpoint of that step is written.
  /// False: training goes on.
  bool nan_guard = true;
};

/// The shared variables of a session (Session::variables), which must outlive it. All functions are
/// called between two steps.
class SharedVariables {
 public:
  /// The scoped names of the variables, in the order in which the graphs of the session make them.
  std::vector<std::string> names() const;
  /// A copy of the newest value of a variable. Throws kNotFound, with the nearest name, when no
  /// variable has this name.
  Tensor get(std::string_view name) const;
  /// Makes `value` the value of a variable; the slots of its rule do not change. Checkpoints have
  /// the new value from the next step on. Throws kNotFound when there is no such variable,
  /// kInvalidArgument, naming both sides, when type or shape differ, and kFailedPrecondition in a
  /// job of several tasks. In such a job, use Initializer::values or RunOptions::init_from for
  /// other initial values; later only contributions change a variable.
  void set(std::string_view name, const Tensor& value);
  /// Writes the newest values to the safetensors file `path`, with the names and layouts of PyTorch
  /// modules (SessionOptions::modules), as `paceline export` does. RunOptions::init_from, Predictor
  /// and load() accept the file. Throws, and leaves no new file, when the file cannot be written.
  void save(const std::string& path) const;
  /// Sets all variables from `checkpoint`, which is named as for RunOptions::init_from; the slots
  /// of the rules do not change. Throws kNotFound when there is no such checkpoint. Throws
  /// kFailedPrecondition, and sets nothing, with a line for each variable that does not fit. Throws
  /// kFailedPrecondition in a job of several tasks, too.
  void load(const std::string& checkpoint);

 private:
  friend class Session;
  explicit SharedVariables(Session& session) : session_(&session) {}
  Session* session_;
};

/// A session trains on one thread. Steps throw the earliest error of the store: kAborted when a ps
/// is lost with its values (run_program then makes a new session, which goes on from the newest
/// checkpoint), kUnavailable when a task refuses or cannot be reached, kDeadlineExceeded when a
/// wait takes too long. The session writes the report (RunOptions::report) when it ends. If a call
/// threw, the report has that "error".
class Session {
 public:
  /// The graphs must outlive the session. A process that is alone makes and initialises the
  /// variables. A worker connects to every ps; the chief initialises the variables there, and the
  /// other workers wait until the chief has done so.
  Session(Training training, const Cluster& cluster, const RunOptions& run,
          const SessionOptions& options = {});
  /// A session of several trainings over the same variables, of one graph or of several. Each
  /// training has its own loss, rules, schedules and clipping, and trains its own variables; it may
  /// read those of other trainings. The program makes steps of one training at a time, in any
  /// order: step(training, feed). All these steps count as global steps. Throws kInvalidArgument
  /// when two trainings train one variable.
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

  /// Makes steps until a hook, the feed or RunOptions end the run. The program may call `run`
  /// again, for example for the next epoch. Returns false when training has ended for good: a hook
  /// ended it, or the steps or seconds of RunOptions are reached. In two cases `feed` is called for
  /// the next step before hooks see the present step. A worker whose variables are read by rows
  /// asks for the rows of the next step with each step. With towers, the next batches are filled
  /// while a step runs. If a hook then ends the run, the next run begins with the inputs that
  /// `feed` has filled. During such a call `feed` may not call the session; with towers, it can
  /// only fill inputs.
  bool run(const std::function<void(Feed&)>& feed);
  /// Makes one step as `run` does, with hooks, checkpoints, limits and interrupts. A program may
  /// use both `step` and `run`. Returns nothing when no step was made, because the feed stopped or
  /// training has ended (ended()). For hooks, successive calls of `step` are one run. That run ends
  /// when a call returns nothing, at the next `run`, or with the session. `feed` is called for this
  /// step alone. The time of the program between two steps counts as time of steps, like the time
  /// of hooks. Evaluations belong to no step.
  std::optional<StepResult> step(const std::function<void(Feed&)>& feed);
  /// Makes one step of training number `training`, counted from 0 in the order in which the session
  /// was given them; `feed` fills the inputs of its graph. With several trainings, `run` and the
  /// step without a number throw kFailedPrecondition. A checkpoint holds the variables of all
  /// trainings, but not which training is next: the program finds that out by last_step().step, or
  /// saves it (on_save).
  std::optional<StepResult> step(int training, const std::function<void(Feed&)>& feed);
  /// True when training has ended for good: the last `run` returned false, or `step` made the last
  /// step or found that no step is left. `step` then makes no more steps; `run` makes the steps
  /// that RunOptions still allow.
  bool ended() const;
  /// Makes one step of a graph without updates, in the mode that is given, and returns copies of
  /// the fetched values. Local variables of a graph that was added by share() change as in a step;
  /// those of a train graph do not. The variables have the values that begin_evaluation read. The
  /// first evaluation, and the first evaluation after each train step of this session, call
  /// begin_evaluation by themselves.
  std::vector<Tensor> evaluate(const Graph& graph, std::span<const Value> fetches,
                               const std::function<void(Feed&)>& feed, Mode mode = Mode::kInfer);
  /// Does the same as evaluate without copies. The views are valid until the next step of the same
  /// graph.
  std::span<const TensorView> evaluate_in_place(const Graph& graph, std::span<const Value> fetches,
                                                const std::function<void(Feed&)>& feed,
                                                Mode mode = Mode::kInfer);
  /// Evaluates the value of this name (Graph::find) in any graph of the session; train graphs are
  /// searched first. Throws kNotFound, with the nearest name, when no graph has the name.
  Tensor evaluate(std::string_view name, const std::function<void(Feed&)>& feed,
                  Mode mode = Mode::kInfer);
  /// Evaluates one value of any graph of the session, gradients() included. Throws kInvalidArgument
  /// when the value belongs to another graph.
  Tensor evaluate(Value value, const std::function<void(Feed&)>& feed, Mode mode = Mode::kInfer);
  /// Reads the newest variables from the store, since other workers may have changed them, or their
  /// moving averages. Evaluations use these values until the next train step of this session.
  void begin_evaluation(EvaluateWith with = EvaluateWith::kVariables);
  /// Reads the variables of a checkpoint instead, for example the best one of this run, to which
  /// early stopping returns: begin_evaluation(run.out + ":best"). `checkpoint` is named as for
  /// RunOptions::init_from. One process waits until the newest checkpoint is written; in a job of
  /// several tasks, call save() to wait. Throws kNotFound when there is no such checkpoint.
  void begin_evaluation(const std::string& checkpoint,
                        EvaluateWith with = EvaluateWith::kVariables);
  /// Does the same as evaluate_in_place in Mode::kInfer, but reads the variables from the store
  /// each time. The call counts as a step in the report.
  std::span<const TensorView> fetch(const Graph& graph, std::span<const Value> fetches,
                                    const std::function<void(Feed&)>& feed);

  /// The value of SessionOptions::watch after the last step that computed it. Each such step
  /// overwrites the tensor. Throws kNotFound for a value that is not watched.
  const Tensor& value(Value watched) const;
  /// Sets the local variables of a graph to zero, such as LSTM state at the start of an epoch.
  void reset_locals(const Graph& graph);
  /// Sets a factor on all learning rates from the next step on. The factor is this worker's own and
  /// travels with its contributions.
  void set_learning_rate_factor(double factor);

  /// The last step of this task; zeros before its first.
  const StepResult& last_step() const;
  /// Gives hooks (Summaries) a number of the model, for the current global step. If `tag` is the
  /// name in RunOptions::keep_best, the number rates the checkpoint that was evaluated last: by
  /// this session since its last step, or by the Evaluator that took values last. If there is no
  /// such checkpoint, the number rates the present values, which are then saved.
  void summarise(const std::string& tag, double value);
  /// The job that the session was made with.
  const Cluster& cluster() const;
  /// The run options that the session was made with.
  const RunOptions& run_options() const;
  /// False when an observer wanted no more than the plan (SessionObserver::planned), as in a dry
  /// run: nothing was started, and nothing will be. Training has ended before its first step, all
  /// values are zeros, feed functions and hooks are not called, and nothing is printed or written.
  /// A program that writes its own results asks this first.
  bool started() const;
  /// This task's place in its data after the last step, as feed functions have set it
  /// (Feed::position). Before the first step, the position is that of the checkpoint from which the
  /// task resumes. The position is empty when the task begins anew, or was restarted in a job that
  /// went on; then last_step().step says how far the task got.
  const TaskPosition& position() const;
  /// Makes the session call `tell`, between two steps, whenever it begins a checkpoint. `tell` can
  /// add numbers to the position that is saved. What `tell` uses must outlive the session. Local
  /// variables of the session's graphs are saved without `tell`.
  Session& on_save(std::function<void(TaskPosition&)> tell);
  /// Saves the state between two steps, unless this state is saved already, and waits until the
  /// checkpoint is written. Throws when the save fails. Only the chief saves, and only if
  /// RunOptions::out is not empty. The session saves by itself when training ends for good.
  void save();
  /// The shared variables, to be read, set, saved and loaded between two steps.
  SharedVariables variables();

  /// Ends training for all workers of the job, as a limit of steps does. For example, a hook of the
  /// chief may call this when an evaluation shows that enough is learnt. This worker begins no
  /// further step. Another worker may begin one or two steps before it hears of the end; then its
  /// `run` returns false. In one process, the call ends the training of this session.
  void stop_all();
  /// Says that this worker trains no more, and waits until all other workers have said so or are
  /// lost.
  void finish_training();
  /// Adds a number to the report, such as report("perplexity", "train", 40.1); nullopt is written
  /// as null. A section "fetch/SHAPE" is the entry {"shape": SHAPE, …} of the list "fetch".
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
