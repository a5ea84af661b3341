// The one interface between a training step and distribution: the step says that it needs a
// parameter, or that a contribution is ready. Every strategy is one implementation of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/memory_space.h"
#include "kernels/event.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/rule.h"
#include "paceline/strategy.h"
#include "paceline/tensor.h"
#include "trace/step_account.h"

namespace paceline {

/// An index into the list of variables that a store was made with.
using VariableId = int;

/// A shared variable, on which every task of a job must agree.
struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Rule rule = Sgd{};
  float weight_decay = 0;
  /// If it is above 0 and the variable is trained, the last slot is the variable's moving average
  /// (RuleStep::average_decay).
  float average_decay = 0;
  bool average_ramp = false;  // true if MinimizeOptions::average_ramp is
  bool trained = true;        // false if it is frozen or only read
  bool sparse = false;        // true if it is read and updated by rows of dimension 0
  bool operator==(const VariableSpec&) const = default;
};

/// The variables that one plan reads and contributes to.
struct PlanBinding {
  struct Use {
    VariableId variable;
    bool updated = false;        // the plan contributes to it, and does not only read it
    std::int64_t most_rows = 0;  // the most rows of a sparse variable in a step
    bool streamed = false;       // the contribution goes to sink(), range by range
    bool reread = false;         // several kernels of a step read it
  };
  std::vector<Use> uses;  // in the order in which the plan first reads them
};

enum class StepKind : std::uint8_t { kTrain = 0, kEvaluate = 1, kFetch = 2 };

/// The rows of a sparse variable that a batch reads. The ids are unique and ascend.
struct RowSet {
  VariableId variable;
  std::span<const std::int32_t> ids;
};

/// The numbers that a step tells the store when it begins.
struct StepScalars {
  std::span<const float> learning_rates;  // by VariableId, for every variable of the store
  std::int64_t examples = 0;
  std::int64_t step = 0;  // the task's own step, from 0
};

/// A contribution, which lies in the place that place() gave unless it is lent. A dense one has the
/// variable's shape; in a sparse one the first ids.size() rows are valid.
struct Contribution {
  bool sparse = false;
  /// The unique row ids of a sparse contribution, valid until end_step returns.
  std::span<const std::int32_t> ids = {};
  /// The memory of a dense contribution that does not lie in its place; else null. Only a store
  /// that takes_lent() gets such a contribution. The memory is valid until end_step returns, and
  /// must not be written.
  const float* lent = nullptr;
};

/// A variable and its slots at one moment.
struct VariableState {
  VariableId variable;
  Tensor value;
  std::vector<Tensor> slots;  // the slots, in the order of slots_of; scalar ones have shape (1)
};

/// The number of the global step that a contribution made. It is known once the shard that counts
/// steps has answered.
class StepHandle {
 public:
  virtual ~StepHandle() = default;
  /// Waits for the number. Throws the store's error, or kDeadlineExceeded.
  virtual std::int64_t global_step() = 0;
};

/// The party that computes the norm by which contributions are clipped.
enum class NormBy : std::uint8_t {
  kPlan,  // the plan computes the norm of its own contributions, and passes the scale to end_step
  /// The store computes the norm of what it applies, such as a mean of several contributions.
  kStore,
};

/// The clip scale of a contribution that has NaN or infinity, and must not be applied.
constexpr float kSkipContribution = std::numeric_limits<float>::quiet_NaN();
inline bool is_skipped(float clip_scale) { return std::isnan(clip_scale); }

/// Ends a step that the task must repeat from begin_step on, with the same inputs, because the
/// group of tasks that make the step together has changed.
struct RepeatStep {};

/// Memory, and the event after which it may be used. An empty event allows its use at once.
struct AsyncView {
  AsyncView() = default;
  AsyncView(const TensorView& memory, const Event& after = {}) : view(memory), event(after) {}
  TensorView view;
  Event event;
};

/// A plan's calls on the store. An object is called by one thread; executors share it only if they
/// make their steps by turns. need, place and end_step throw the earliest error of a peer.
class StoreSteps {
 public:
  virtual ~StoreSteps() = default;

  virtual NormBy norm_by() const { return NormBy::kPlan; }
  /// The space in which the memory of need() and place() lies.
  virtual MemorySpace space() const { return {}; }
  /// From now on, the time in which a call waits for the device's event counts as compute of
  /// `account`, which must outlive the steps.
  virtual void count_waits(StepAccount& account) { account_ = &account; }
  /// True if end_step can use the next batch's rows.
  virtual bool wants_next_rows() const { return false; }
  /// Begins a step, and requests the values that are stale. They are stale in the first step, and
  /// in the first train step after any other use. `rows` are those that the batch reads; rows that
  /// end_step was told of are not requested again, and may be left out.
  virtual void begin_step(StepKind kind, std::span<const RowSet> rows,
                          const StepScalars& scalars) = 0;
  /// Waits for the value that this step reads, which has the variable's full shape and includes
  /// this worker's last contribution. Of a sparse variable only the requested rows are valid. Other
  /// workers' updates may change the memory meanwhile, element by element. The memory must not be
  /// written. Between a train step and the next step of its plan, need() waits for the value that
  /// the contribution has made.
  virtual AsyncView need(VariableId variable) = 0;
  /// Returns the place for the contribution, which has the variable's shape, or (most_rows, …) if
  /// it is sparse. Waits until the previous contribution was taken.
  virtual AsyncView place(VariableId variable) = 0;
  /// Replaces place() if PlanBinding::Use::streamed is set; if plans of several batch sizes share
  /// the steps, each plan calls the one that suits it. The sink takes the contribution while a
  /// kernel makes it, and is valid until ready(), which says that every range was given. Once
  /// sink() was called, nothing in this step may read the variable. Waits as place() does.
  virtual OutputSink& sink(VariableId /*variable*/) {
    throw Error(ErrorCode::kFailedPrecondition, "[store] takes no streams");
  }
  /// Says that after `event` the contribution is final, and nothing in this step reads the variable
  /// or the contribution any more. The ids can be read at once. Waits for nothing but the event.
  virtual void ready(VariableId variable, const Contribution& contribution, const Event& event) = 0;
  /// Returns the exchange with which kernels add their sums to those of the other parts of a train
  /// step's batch, or null if this part is the whole batch. Calls of the exchange belong to the
  /// step, and may throw RepeatStep.
  virtual SumExchange* exchange() { return nullptr; }
  /// Ends the step. If the plan computes the norm to clip by, the contributions are multiplied by
  /// `clip_scale`; if the store computes it, the store ignores the scale. With kSkipContribution no
  /// contribution is applied, but the step counts. `next_rows` are the next batch's rows, if they
  /// are known. The handle is valid until the next end_step. Throws RepeatStep only if there is an
  /// exchange().
  virtual StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) = 0;

 protected:
  /// Waits for the event. For a store that reads contributions on the host.
  void wait_on_host(const Event& event) {
    if (event.empty()) return;
    std::optional<DeviceWaitScope> wait;
    if (account_ != nullptr) wait.emplace(*account_);
    event.synchronize();
  }

 private:
  StepAccount* account_ = nullptr;
};

struct StoreAccount {
  std::int64_t bytes_sent = 0, bytes_received = 0;
  /// The time in which at least one link of this store had something to send or to receive.
  Duration transfer{0};
};

/// The link from this task to a task that keeps variables for it.
struct StoreLink {
  std::string to;                      // "ps:0"
  std::string kind;                    // "shm", "tcp"; as Connection::kind names it
  std::optional<Duration> round_trip;  // as the system measured it
  std::int64_t bytes_sent = 0, bytes_received = 0;
  bool encrypted = false;
};

class ParameterStore {
 public:
  virtual ~ParameterStore() = default;
  virtual std::span<const VariableSpec> variables() const = 0;
  /// True if the steps that bind() returns have a sink() for dense contributions that are not
  /// clipped.
  virtual bool takes_streams() const { return false; }
  /// True if dense contributions may lie outside their places (Contribution::lent).
  virtual bool takes_lent() const { return false; }
  /// Makes the steps of one plan. If `clip_norm` is above 0, a step's contributions are scaled by
  /// min(1, clip_norm / norm), so none is applied before end_step. The norm covers all variables of
  /// the job; norm_by() of the result says who computes it.
  virtual std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) = 0;
  /// Writes initial values or a restored checkpoint, outside a step. From then on the store is
  /// initialised. The store may keep the memory of tensors that nobody else holds.
  virtual void write(std::vector<VariableState> states, std::int64_t global_step) = 0;
  virtual bool initialised() const = 0;
  /// Moves the value of a variable that write() has set to the memory `to`, which has its size and
  /// must outlive the store; from then on the value lies there. Returns false if the value stays
  /// where it is. For use outside a step.
  virtual bool move_value(VariableId /*variable*/, std::span<std::byte> /*to*/) { return false; }
  /// Reads variables and their slots, each as it was at one moment; with one worker all are of the
  /// same step.
  virtual std::vector<VariableState> read(std::span<const VariableId> variables) = 0;
  virtual std::int64_t global_step() const = 0;
  virtual StoreAccount account() const { return {}; }
  /// Returns the link to each task that keeps variables, in task order; none in one process.
  virtual std::vector<StoreLink> links() const { return {}; }
  /// The number of this task's contributions that were skipped because they had NaN or infinity.
  virtual std::int64_t skipped() const { return 0; }
  /// Returns zero contributions if nobody else updates the variables, since nothing is counted
  /// then.
  virtual Staleness staleness() const { return {}; }
};

}  // namespace paceline
