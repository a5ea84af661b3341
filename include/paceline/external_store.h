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
  /// If it is above 0, steps read and update rows of dimension 0, each step at most this number of
  /// them.
  std::int64_t most_rows = 0;
  /// True for a variable that is kept, saved and handed out, and never updated.
  bool frozen = false;
  /// The options that differ for this variable: its rule, weight decay, schedule and so on. Their
  /// prefix and `frozen` are ignored. Empty: those of MinimizeOptions.
  std::optional<VariableGroup> own = {};
  /// For predictions: the seconds for which the model computes between its need for the previous
  /// variable and its need for this one. 0 for all variables: not known.
  double seconds_to_need = 0;
  /// The seconds for which the model computes between the moment when the next variable's gradient
  /// was ready and the moment when this one's is.
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
  /// One entry for each variable that is read by rows; a variable that is left out is not read in
  /// this step.
  std::vector<BatchRows> rows = {};
  /// The program's place in its data once this batch is used, which checkpoints keep; empty: the
  /// place stays as it was.
  std::optional<TaskPosition> position = {};
};

/// The options of an ExternalStore beside those of its session.
struct ExternalStoreOptions {
  /// Clipping, schedules, groups of variables by the beginnings of their names, moving averages.
  MinimizeOptions minimize = {};
  /// The options that any session has. `examples_per_step` must be given for a rate in examples per
  /// second; `watch` and `input` have no meaning here.
  SessionOptions session = {};
  /// It is called some four times a second by each thread that waits in a call of the store, on
  /// that thread. If it throws, the wait ends and the call throws that exception.
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
/// expect, and training has ended. Where training ends before, close() throws kFailedPrecondition.
///
/// The session behind it has a thread of its own, which makes the steps, moves values and
/// gradients, and applies the rule. Calls of other threads only wait for that thread, and hold no
/// lock while they wait. Every function may be called from any thread; begin_step, end_step,
/// abandon and with_session are calls of one thread at a time. Once the session has failed, each
/// call throws its earliest error, and so does a call that was waiting. Throws kFailedPrecondition
/// for a call in the wrong order: need, ready or end_step outside a step, begin_step and
/// with_session within a step.
class ExternalStore {
 public:
  /// Joins the job that `cluster` describes and waits until the variables are initialised, as a
  /// session does. Throws what a session throws, and kInvalidArgument for a variable that cannot be
  /// trained this way, for towers, and for --sync-batch-norm: here the other code does the work of
  /// the last two.
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

  /// Begins a step. Returns false, and begins no step, when training has ended (a limit, a hook or
  /// another worker says so), or when the run has been predicted. Throws kCancelled when the user
  /// has interrupted the job, once the chief has saved a checkpoint; kInvalidArgument for rows that
  /// the variable does not have, or more than most_rows.
  bool begin_step(const ExternalStep& step = {});
  /// Waits for the value that this step reads. It includes this worker's last contribution, and
  /// those of other workers as the strategy says. Of a variable that is read by rows the value has
  /// the shape (ids, …): row i is that of ids[i] as begin_step was given them.
  /// The value is read-only, and the same in each call of a step. It is valid until the gradient of
  /// this variable is handed over, since the rule may write the new value to the same memory;
  /// without a gradient it is valid until end_step. After that the memory may hold any numbers, but
  /// can be read until the store is destroyed or a job of several tasks has failed. Throws
  /// kNotFound for an index that no variable has.
  TensorView need(int variable);
  /// Keeps the value of a variable in `memory`, which is the program's and has the variable's type
  /// and shape: the present value is copied there, and need returns it. The rule changes it once
  /// the gradient was handed over, at the latest when end_step returns. The store holds `owner` as
  /// long as it lives. Returns false, and changes nothing, where values lie elsewhere: in a job of
  /// several tasks, with accumulation, and where the run is to be predicted. Call it between two
  /// steps.
  bool keep_in(int variable, const TensorView& memory, std::shared_ptr<const void> owner = {});
  /// Hands over the gradient, which has the type and shape of the variable, and waits for nothing.
  /// Nothing in this step may read the variable any more.
  /// The store reads the gradient's memory until it releases `owner`, which it does once it has
  /// taken the gradient, at the latest when end_step returns. Without an owner the memory must stay
  /// as it is until end_step returns. Where this process applies the rule to its own gradient (one
  /// process, local_sgd), the store reads the gradient where it lies, and does not copy it.
  /// Throws kInvalidArgument naming both types or shapes when they differ, and for a frozen
  /// variable. Throws kFailedPrecondition for the second gradient of a variable in a step: the
  /// caller adds up several gradients itself.
  void ready(int variable, const TensorView& gradient, std::shared_ptr<const void> owner = {});
  /// Hands over the gradient of a variable that is updated by rows: row i of `rows` (ids.size(), …)
  /// belongs to row ids[i] of the variable. Ids may repeat; their rows are added up.
  void ready(int variable, std::span<const std::int32_t> ids, const TensorView& rows,
             std::shared_ptr<const void> owner = {});
  /// Ends the step. A gradient that was not handed over counts as zeros (of a variable that is
  /// updated by rows: as no row), under every strategy. Returns the step's numbers once the store
  /// has counted the step, hooks have seen it, and a checkpoint that is due has begun. `loss` is
  /// the loss of this step's batch, for reports, hooks and NanGuard. Without it, the step has the
  /// loss of the last step that gave one, or 0.
  StepResult end_step(std::optional<double> loss = {});
  /// Ends a step that cannot be finished, and the session with it: the session fails with this
  /// message. The other tasks see that this task was lost. Does nothing when no step is open.
  void abandon(const std::string& why);
  /// True between begin_step and the end of end_step.
  bool in_step() const;
  /// True once the run has been predicted in place of being trained.
  bool predicted() const;

  /// Sets the factor on the learning rate of a variable's rule, from the next step on. The factor
  /// is this worker's own and travels with its contributions. Schedules are multiplied with it.
  void set_learning_rate_factor(int variable, double factor);
  /// Asks for the end of training, as Ctrl-C does: the next begin_step saves and throws kCancelled.
  /// A step that waits for other tasks is given up after the chief has saved what was finished
  /// before it, and the call that waits throws kCancelled.
  /// In an all-reduce the step is given up only after half a second, in which workers that are
  /// interrupted together can finish it. A step that others have committed is finished, too, as
  /// every step is in hybrid and with --collectives mpi.
  /// The call only sets a flag, so that a signal handler may make it.
  void interrupt();

  /// Calls `use` on the thread of the session, between two steps, waits for it, and throws what it
  /// throws. `use` can reach everything else that a session has: hooks, values of variables, save,
  /// position, stop_all, report.
  void with_session(const std::function<void(Session&)>& use);
  /// Returns the newest value of a variable, from the store. Call it between two steps.
  Tensor read(int variable);
  /// Ends the session between two steps: hooks see the end of the run, and the report is written.
  /// Throws what these throw. Nothing may be called after it.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
