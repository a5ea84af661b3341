// The one interface by which a training step meets distribution: a parameter is needed, a
// contribution is ready. Every way to distribute is one implementation of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/memory_space.h"
#include "kernels/event.h"
#include "paceline/error.h"
#include "paceline/kernel.h"
#include "paceline/rule.h"
#include "paceline/tensor.h"
#include "trace/step_account.h"

namespace paceline {

/// Index into the list of variables that a store was made with.
using VariableId = int;

/// A shared variable as every task must agree on it.
struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Rule rule = Sgd{};
  float weight_decay = 0;
  /// Above 0, and trained: the last slot is the variable's moving average
  /// (RuleStep::average_decay).
  float average_decay = 0;
  bool trained = true;  // false: frozen or only read
  bool sparse = false;  // read and updated by rows of dimension 0
  bool operator==(const VariableSpec&) const = default;
};

/// What one plan does with the variables.
struct PlanBinding {
  struct Use {
    VariableId variable;
    bool updated = false;        // contributes; else only read
    std::int64_t most_rows = 0;  // sparse: rows that one step can read or contribute
    bool streamed = false;       // the contribution comes through sink(), range by range
    bool reread = false;         // by more than one kernel of a step
  };
  std::vector<Use> uses;  // in the order in which the plan first reads them
};

enum class StepKind : std::uint8_t { kTrain = 0, kEvaluate = 1, kFetch = 2 };

/// Rows of a sparse variable that a batch reads; unique, ascending.
struct RowSet {
  VariableId variable;
  std::span<const std::int32_t> ids;
};

/// What travels in a step's first frame.
struct StepScalars {
  std::span<const float> learning_rates;  // by VariableId, for every variable of the store
  std::int64_t examples = 0;
  std::int64_t step = 0;  // the task's own step, from 0
};

/// A contribution: dense (the variable's shape, in the place given), or the first `rows` rows.
struct Contribution {
  bool sparse = false;
  /// Sparse: unique; ids.size() rows are valid in place(). The ids themselves are valid until
  /// end_step returns.
  std::span<const std::int32_t> ids;
};

/// A variable and its slots at one moment.
struct VariableState {
  VariableId variable;
  Tensor value;
  std::vector<Tensor> slots;  // in the order of slots_of, scalar ones (1)
};

/// The global step that a contribution made, once the shard that counts has said so.
class StepHandle {
 public:
  virtual ~StepHandle() = default;
  /// Waits. Throws the store's error, or kDeadlineExceeded.
  virtual std::int64_t global_step() = 0;
};

/// Who computes the norm that contributions are clipped by.
enum class NormBy : std::uint8_t {
  kPlan,   // the plan, of its own contributions: end_step brings the scale
  kStore,  // the store, of what it applies, such as a mean of several contributions
};

/// Memory, and the event after which it may be used.
struct AsyncView {
  AsyncView() = default;
  AsyncView(const TensorView& memory, const Event& after = {}) : view(memory), event(after) {}
  TensorView view;
  Event event;  // empty: at once
};

/// A plan's calls on the store, one object per executor; one thread. An error of a peer surfaces
/// in need, place or end_step, always the earliest one.
class StoreSteps {
 public:
  virtual ~StoreSteps() = default;

  virtual NormBy norm_by() const { return NormBy::kPlan; }
  /// Where the memory lies that need() and place() give.
  virtual MemorySpace space() const { return {}; }
  /// Time in which a call waits for the device's event counts as compute of `account`, which must
  /// outlive the steps.
  virtual void count_waits(StepAccount& account) { account_ = &account; }
  /// Whether end_step has a use for the next batch's rows.
  virtual bool wants_next_rows() const { return false; }
  /// Asks for whatever is stale: on the first step, and on the first train step after any other
  /// use. `rows`: the rows that the batch reads; those that end_step was told are not asked for
  /// again, and need not be said again.
  virtual void begin_step(StepKind kind, std::span<const RowSet> rows,
                          const StepScalars& scalars) = 0;
  /// The value that this step reads, of the variable's full shape; includes this worker's last
  /// contribution. Of a sparse variable only the asked rows are valid. Waits for values. It may be
  /// memory that other workers' updates change meanwhile, element by element; not to be written.
  virtual AsyncView need(VariableId variable) = 0;
  /// Where the contribution is to be written: the variable's shape, or (most_rows, …) when sparse.
  /// Waits until the previous one was taken.
  virtual AsyncView place(VariableId variable) = 0;
  /// In place of place() when PlanBinding::Use::streamed says so: takes the contribution while it
  /// is made. Valid until ready(), which says that every range was given; nothing of this step
  /// reads the variable any more. Waits as place() does.
  virtual OutputSink& sink(VariableId /*variable*/) {
    throw Error(ErrorCode::kFailedPrecondition, "[store] takes no streams");
  }
  /// Once `event` has happened, the contribution is final and nothing of this step reads the
  /// variable or the contribution any more. The ids can be read at once. Blocks for nothing but the
  /// event.
  virtual void ready(VariableId variable, const Contribution& contribution, const Event& event) = 0;
  /// The step's last call. With clipping by the plan's norm the contributions count times
  /// `clip_scale`; by the store's norm the scale is ignored.
  /// `next_rows`: the next batch's rows, if known. The handle is valid until the next end_step.
  virtual StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) = 0;

 protected:
  /// For a store that reads contributions on the host.
  void wait_on_host(const Event& event) {
    if (event.empty()) return;
    std::optional<AccountScope> compute;
    if (account_ != nullptr) compute.emplace(*account_, Activity::kCompute);
    event.synchronize();
  }

 private:
  StepAccount* account_ = nullptr;
};

struct StoreAccount {
  std::int64_t bytes_sent = 0, bytes_received = 0;
  /// Time in which a link of this store had something to send or to receive.
  Duration transfer{0};
};

class ParameterStore {
 public:
  virtual ~ParameterStore() = default;
  virtual std::span<const VariableSpec> variables() const = 0;
  /// Whether what bind() gives has a sink() for dense contributions that are not clipped.
  virtual bool takes_streams() const { return false; }
  /// `clip_norm` above 0: a step's contributions are scaled by min(1, clip_norm / norm), so that
  /// none is applied before end_step; the norm is that of all variables of the job, and norm_by()
  /// of the result says who computes it. 0: no clipping.
  virtual std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) = 0;
  /// Outside a step: initial values or a restored checkpoint; from then on initialised. Memory of
  /// tensors that nobody else holds may become the store's.
  virtual void write(std::vector<VariableState> states, std::int64_t global_step) = 0;
  virtual bool initialised() const = 0;
  /// Each variable and its slots of one moment; with one worker all of the same step.
  virtual std::vector<VariableState> read(std::span<const VariableId> variables) = 0;
  virtual std::int64_t global_step() const = 0;
  virtual StoreAccount account() const { return {}; }
};

}  // namespace paceline
