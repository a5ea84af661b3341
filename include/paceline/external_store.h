// A store for models that other code computes, such as another framework's: Paceline keeps the
// variables, exchanges the gradients among the workers and applies the rule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/minimize.h"
#include "paceline/rule.h"
#include "paceline/run_options.h"
#include "paceline/session.h"
#include "paceline/task_position.h"
#include "paceline/tensor.h"

namespace paceline {

/// A variable of a model that other code computes.
struct ExternalVariable {
  std::string name;  // unique; checkpoints, reports and errors use it
  /// The value with which the chief begins; on every worker its type (float32) and shape are those
  /// of the variable. Copies share the memory, and the store only reads it.
  Tensor initial;
  /// If it is above 0, steps read and update the variable by rows of dimension 0, and each step at
  /// most this number of rows.
  std::int64_t most_rows = 0;
  /// True for a variable that is kept, saved and handed out, and never updated.
  bool frozen = false;
  /// The options that differ for this variable: its rule, weight decay, schedule and so on. Their
  /// prefix and `frozen` are ignored. Empty: those of MinimizeOptions.
  std::optional<VariableGroup> own = {};
  /// For predictions, the time that the model computes before it needs the variable, from when it
  /// needed the one before; 0 for all variables: not known.
  double seconds_to_need = 0;
  /// The seconds of computing before the gradient is ready, from when the gradient of the next
  /// variable was ready.
  double seconds_to_ready = 0;
};

/// The rows of a variable (ExternalVariable::most_rows) that a batch reads.
struct BatchRows {
  int variable = 0;  // its index
  /// The indices of the rows, in any order; an index may occur several times.
  std::vector<std::int32_t> ids;
};

/// The description of a step that begins.
struct ExternalStep {
  /// Of every variable that is read by rows; one that is left out is not read in this step.
  std::vector<BatchRows> rows = {};
  /// The program's place in its data once this batch is used, which checkpoints keep; empty: it
  /// stays what it was.
  std::optional<TaskPosition> position = {};
};

/// The options of an ExternalStore beside those of its session.
struct ExternalStoreOptions {
  /// Clipping, schedules, groups of variables by the beginnings of their names, moving averages.
  MinimizeOptions minimize = {};
  /// As of any session. `examples_per_step` must be given for a rate in examples per second;
  /// `watch` and `input` have no meaning here.
  SessionOptions session = {};
  /// It is called some four times a second by each thread that waits in a call of the store, on
  /// that thread. An exception of it ends that wait, and the call throws it.
  std::function<void()> check_wait = {};
};

/// Trains as a Session does, with all its strategies, checkpoints and reports, a model of which the
/// store sees only values and gradients:
///
///     ExternalStore store(variables, Adam{.learning_rate = 1e-3f}, cluster, run);
///     while (store.begin_step({})) {
///       for (int v = 0; v < store.variables(); ++v) use(store.need(v));  // forward
///       …                                                                // backward:
///       store.ready(v, gradient, owner);          // as soon as each gradient is there
///       store.end_step(loss);
///     }
///
/// The variables are given in the order in which a step first needs them; all workers give the same
/// list, which the job compares as it does those of graphs. Gradients may be handed over in any
/// order and from any thread; those of the last variables are expected first, and travel while the
/// others are computed.
///
/// Where the run is to be predicted (RunOptions::predicts), the first ten steps are made in one
/// process, which leaves nothing behind. From them the store learns when the model needs each
/// variable and has each gradient; the tenth end_step has the run's observers print what they
/// expect, and training has ended. Where it ends before, close() throws kFailedPrecondition.
///
/// The session behind it has a thread of its own, which makes, moves and applies; calls of other
/// threads only wait for it, and hold no lock while they wait. Every function may be called from
/// any thread; begin_step, end_step, abandon and with_session are calls of one thread at a time.
/// Once the session has failed, each call throws its earliest error, and so does a call that was
/// waiting. Throws kFailedPrecondition for a call in the wrong order: need, ready or end_step
/// outside a step, begin_step and with_session in one.
class ExternalStore {
 public:
  /// Joins the job that `cluster` describes and waits until the variables are initialised, as a
  /// session does. Throws what a session throws, and kInvalidArgument for a variable that cannot be
  /// trained so, for towers and for --sync-batch-norm, which are the other code's here.
  ExternalStore(std::vector<ExternalVariable> variables, const Rule& rule, const Cluster& cluster,
                const RunOptions& run, const ExternalStoreOptions& options = {});
  /// Calls close(), and prints its error instead of throwing. A step that is open is abandoned.
  ~ExternalStore();
  ExternalStore(const ExternalStore&) = delete;
  ExternalStore& operator=(const ExternalStore&) = delete;

  /// The number of variables.
  int variables() const;
  /// The variable at this index. Throws kNotFound.
  const ExternalVariable& variable(int index) const;
  /// The index of the variable of this name. Throws kNotFound with the nearest name.
  int index_of(std::string_view name) const;

  /// Begins a step. Returns false when training has ended: a limit, a hook or another worker says
  /// so, or the run has been predicted, and there is no step. Throws kCancelled when the user has
  /// interrupted the job, once the chief has saved a checkpoint; kInvalidArgument for rows that the
  /// variable does not have, or more than most_rows.
  bool begin_step(const ExternalStep& step = {});
  /// Waits for the value that this step reads: it has this worker's last contribution, and what
  /// the strategy says of those of others. Of a variable that is read by rows it has the shape
  /// (ids, …): row i is that of ids[i] as begin_step was given them. It is read only, it is the
  /// same in each call of a step, and it is valid until the gradient of this variable is handed
  /// over: what the rule makes of it may lie in the same memory. Without a gradient it is valid
  /// until end_step. The memory can be read until the store is destroyed, or a job of several tasks
  /// has failed, but then holds any numbers. Throws kNotFound for an index that there is not.
  TensorView need(int variable);
  /// Keeps the value of a variable in memory of the program's, of its type and shape: need gives
  /// that memory, to which the present value is copied. It is changed by the rule: once the
  /// gradient was handed over, at the latest when end_step returns. `owner` is held while the store
  /// lives. Returns false, and changes nothing, where the values lie elsewhere: in a job of several
  /// tasks, with accumulation, and where the run is to be predicted. Between two steps.
  bool keep_in(int variable, const TensorView& memory, std::shared_ptr<const void> owner = {});
  /// Hands over the gradient, which has the type and shape of the variable, and waits for nothing.
  /// The store reads its memory until `owner` is released, which it does once it has taken the
  /// gradient, at the latest when end_step returns; without an owner the memory stays as it is
  /// until then. Where this process applies the rule to its own gradient (one process, local_sgd)
  /// the gradient is read where it lies, and not copied. Nothing of this step may read the variable
  /// any more. Throws kInvalidArgument naming both types or shapes when they differ, and for a
  /// frozen variable; kFailedPrecondition for the second gradient of a step: gradients of one
  /// variable are added up by whoever makes them.
  void ready(int variable, const TensorView& gradient, std::shared_ptr<const void> owner = {});
  /// Hands over the gradient of a variable that is updated by rows: row i of `rows` (ids.size(), …)
  /// belongs to row ids[i] of the variable. Ids may repeat; their rows are added up.
  void ready(int variable, std::span<const std::int32_t> ids, const TensorView& rows,
             std::shared_ptr<const void> owner = {});
  /// Ends the step. A gradient that was not handed over counts as zeros (of a variable that is
  /// updated by rows: as no row), under every strategy. Returns the step's numbers once the store
  /// has counted it, hooks have seen it and a checkpoint that is due was begun. `loss` is that of
  /// this step's batch, for reports, hooks and NanGuard; without one it is that of the last step
  /// that had one, and 0 before.
  StepResult end_step(std::optional<double> loss = {});
  /// Ends a step that cannot be finished, and the session with it: it fails with this message. The
  /// other tasks see that this one was lost. Does nothing when no step is open.
  void abandon(const std::string& why);
  /// True between begin_step and the end of end_step.
  bool in_step() const;
  /// True once the run has been predicted in place of being trained.
  bool predicted() const;

  /// Sets the factor on the learning rate of a variable's rule, from the next step on. It is this
  /// worker's own and travels with its contributions. Schedules are multiplied with it.
  void set_learning_rate_factor(int variable, double factor);
  /// Asks for the end of training, as Ctrl-C does: the next begin_step saves and throws kCancelled.
  /// A step that waits for other tasks is given up, after the chief has saved what was finished
  /// before it, and the call that waits throws kCancelled. In an all-reduce half a second passes
  /// before, in which workers that are interrupted together finish it; a step that others have
  /// committed is finished, as it is in hybrid and with --collectives mpi. It only sets a flag, and
  /// may be called from a signal handler.
  void interrupt();

  /// Calls `use` on the thread of the session, between two steps, and waits for it; throws what it
  /// throws. This is the way to all else that a session has: hooks, values of variables, save,
  /// position, stop_all, report.
  void with_session(const std::function<void(Session&)>& use);
  /// The newest value of a variable, from the store. Between two steps.
  Tensor read(int variable);
  /// Ends the session between two steps: hooks see the end of the run, and the report is written.
  /// Throws what that throws. Nothing can be called after it.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
