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
  /// The initial value, which the chief's store takes. On every worker, its type (float32) and
  /// shape are those of the variable. Copies of the tensor share the memory, which the store only
  /// reads.
  Tensor initial;
  /// 0: steps read and update the whole variable. Above 0: steps read and update some rows of
  /// dimension 0, each step at most this number of rows.
  std::int64_t most_rows = 0;
  /// True for a variable that is kept, saved and handed out, and never updated.
  bool frozen = false;
  /// The options that differ for this variable: its rule, weight decay, schedule and so on. Their
  /// prefix and `frozen` are ignored. Empty: the variable has the options of MinimizeOptions.
  std::optional<VariableGroup> own = {};
  /// For predictions: the seconds for which the model computes between its need for the previous
  /// variable and its need for this one. The times are not known if they are 0 for all variables.
  double seconds_to_need = 0;
  /// For predictions: the seconds for which the model computes between the next variable's gradient
  /// and this variable's gradient, which is ready later.
  double seconds_to_ready = 0;
};

/// The rows of a variable (ExternalVariable::most_rows) that a batch reads.
struct BatchRows {
  int variable = 0;  // the index of the variable
  /// The indices of the rows, in any order; an index may occur several times.
  std::vector<std::int32_t> ids;
};

/// The description of a step that begins.
struct ExternalStep {
  /// One entry for each variable of which this step reads some rows. The step reads no rows of
  /// variables without an entry.
  std::vector<BatchRows> rows = {};
  /// The program's place in its data once this batch is used, which checkpoints keep; empty: the
  /// place stays as it was.
  std::optional<TaskPosition> position = {};
};

/// The options of an ExternalStore, those of its session included.
struct ExternalStoreOptions {
  /// Clipping, schedules, groups of variables by the beginnings of their names, moving averages.
  MinimizeOptions minimize = {};
  /// The options that any session has. `examples_per_step` must be given for a rate in examples per
  /// second; `watch` and `input` have no meaning here.
  SessionOptions session = {};
  /// Each thread that waits in a call of the store calls this function some four times a second. If
  /// the function throws, the wait ends and the call throws that exception.
  std::function<void()> check_wait = {};
};

/// Trains a model that other code computes. The store sees only the values and gradients of the
/// model, and trains as a Session does, with all strategies, checkpoints and reports:
///
///     ExternalStore store(variables, Adam{.learning_rate = 1e-3f}, cluster, run);
///     while (store.begin_step({})) {
///       for (int v = 0; v < store.variables(); ++v) use(store.need(v));  // forward
///       …                                                                // backward:
///       store.ready(v, gradient, owner);          // as soon as each gradient is there
///       store.end_step(loss);
///     }
///
/// The variables are given in the order in which a step first needs them. All workers must give the
/// same list; the job compares the lists as it compares the variables of graphs. Gradients may be
/// handed over in any order and from any thread. The store expects those of the last variables
/// first, and sends them while the program computes the others.
///
/// If the run is to be predicted (RunOptions::predicts), the store makes ten steps in one process
/// and writes nothing. From these steps the store learns when the model needs each variable and
/// when each gradient is ready. In the tenth end_step the run's observers print what they expect,
/// and training has ended. If training ends before the tenth step, close() throws
/// kFailedPrecondition.
///
/// The session of the store has a thread of its own, which makes the steps, moves values and
/// gradients, and applies the rule. Calls of other threads only wait for that thread, and hold no
/// lock while they wait. Every function may be called from any thread; only one thread at a time
/// may call begin_step, end_step, abandon and with_session. Once the session has failed, each call
/// throws its earliest error, and so does a call that was waiting. Calls in the wrong order throw
/// kFailedPrecondition: need, ready or end_step outside a step, begin_step or with_session within a
/// step.
class ExternalStore {
 public:
  /// Joins the job that `cluster` describes and waits until the variables are initialised, as a
  /// session does. Throws what a session throws, and kInvalidArgument for a variable that cannot be
  /// trained this way, for towers, and for --sync-batch-norm: the other code must do the work of
  /// towers and of batch norm itself.
  ExternalStore(std::vector<ExternalVariable> variables, const Rule& rule, const Cluster& cluster,
                const RunOptions& run, const ExternalStoreOptions& options = {});
  /// Calls close(), and prints the error that close() throws. A step that is open is abandoned.
  ~ExternalStore();
  ExternalStore(const ExternalStore&) = delete;
  ExternalStore& operator=(const ExternalStore&) = delete;

  /// The number of variables.
  int variables() const;
  /// The variable at this index. Throws kNotFound.
  const ExternalVariable& variable(int index) const;
  /// The index of the variable of this name. Throws kNotFound with the nearest name.
  int index_of(std::string_view name) const;

  /// Begins a step. Returns false, and begins no step, when training has ended (by a limit, a hook
  /// or another worker), or when the run has been predicted. Throws kCancelled when the user has
  /// interrupted the job, once the chief has saved a checkpoint; kInvalidArgument for rows that the
  /// variable does not have, or more than most_rows.
  bool begin_step(const ExternalStep& step = {});
  /// Waits for the value that this step reads. It includes this worker's last contribution, and
  /// those of other workers as the strategy says. For a variable that is read by rows, the value
  /// has the shape (ids, …), and row i is row ids[i] of the variable, with the ids that begin_step
  /// was given. The value is read-only, and the same in each call of a step. It is valid until the
  /// gradient of this variable is handed over, since the rule may write the new value to the same
  /// memory; without a gradient it is valid until end_step. After that the memory may hold any
  /// numbers, but can be read until the store is destroyed or a job of several tasks has failed.
  /// Throws kNotFound for an index that no variable has.
  TensorView need(int variable);
  /// Keeps the value of a variable in `memory`, which belongs to the program and has the variable's
  /// type and shape. The present value is copied there, and need returns this memory. The rule
  /// changes the memory once the gradient was handed over, at the latest when end_step returns. The
  /// store holds `owner` until the store is destroyed. Returns false, and changes nothing, where
  /// the store must keep values elsewhere: in a job of several tasks, with accumulation, and where
  /// the run is to be predicted. Call the function between two steps.
  bool keep_in(int variable, const TensorView& memory, std::shared_ptr<const void> owner = {});
  /// Hands over the gradient, which has the type and shape of the variable, and returns at once.
  /// After this call the program must not read the variable in this step. The store reads the
  /// gradient's memory until it releases `owner`, at the latest when end_step returns. Without an
  /// owner the memory must stay as it is until end_step returns. Where this process applies the
  /// rule to its own gradient (one process, local_sgd), the store reads the gradient where it lies,
  /// and does not copy it. Throws kInvalidArgument naming both types or shapes when they differ,
  /// and for a frozen variable. Throws kFailedPrecondition for the second gradient of a variable in
  /// a step: a program with several gradients of a variable adds them up itself.
  void ready(int variable, const TensorView& gradient, std::shared_ptr<const void> owner = {});
  /// Hands over the gradient of a variable that is updated by rows: row i of `rows` (ids.size(), …)
  /// belongs to row ids[i] of the variable. Ids may repeat; their rows are added up.
  void ready(int variable, std::span<const std::int32_t> ids, const TensorView& rows,
             std::shared_ptr<const void> owner = {});
  /// Ends the step. Under every strategy, a gradient that was not handed over counts as zeros, and
  /// for a variable that is updated by rows as no row. Returns the step's numbers once the store
  /// has counted the step, hooks have seen it, and a checkpoint that is due has begun. `loss` is
  /// the loss of this step's batch, for reports, hooks and NanGuard. Without it, the step has the
  /// loss of the last step that gave one, or 0.
  StepResult end_step(std::optional<double> loss = {});
  /// Ends a step that cannot be finished, and the session with it: the session fails with the
  /// message `why`. The other tasks see that this task was lost. Between two steps, the call ends
  /// the session in the same way. Does nothing once the session has failed or ended.
  void abandon(const std::string& why);
  /// True between begin_step and the end of end_step.
  bool in_step() const;
  /// True once the run has been predicted in place of being trained.
  bool predicted() const;

  /// Sets a factor on the learning rate of a variable's rule, from the next step on. The factor is
  /// this worker's own and travels with its contributions. It multiplies the factor of the
  /// schedule.
  void set_learning_rate_factor(int variable, double factor);
  /// Asks for the end of training, as Ctrl-C does: the next begin_step saves and throws kCancelled.
  /// A step that waits for other tasks is given up after the chief has saved what was finished
  /// before it, and the call that waits throws kCancelled. In an all-reduce the step is given up
  /// only after half a second, in which workers that are interrupted together can finish it. A step
  /// that the other workers have committed is still finished. With the strategy hybrid and with
  /// --collectives mpi, every step is finished. The function only sets a flag, so a signal handler
  /// may call it.
  void interrupt();

  /// Calls `use` on the thread of the session, between two steps, waits until `use` returns, and
  /// throws what `use` throws. `use` can reach everything else that a session has: hooks, values of
  /// variables, save, position, stop_all, report.
  void with_session(const std::function<void(Session&)>& use);
  /// Reads the newest value of a variable from the store. Call the function between two steps.
  Tensor read(int variable);
  /// Ends the session: the chief saves, hooks see the end of the run, and the report is written. A
  /// step that is open is abandoned. Throws what these actions throw. No other function may be
  /// called after close().
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
