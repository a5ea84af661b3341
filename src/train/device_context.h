// A device of a session with all that runs on it: plans, their memory, and a snapshot of the
// variables. Several contexts of one session run at once, each on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "paceline/session.h"
#include "train/batch_feed.h"
#include "train/input_normals.h"
#include "train/plan_set.h"

namespace paceline {

/// Returns a copy of the values that the view shows now.
Tensor copy_of(const TensorView& view);
/// Returns a copy of the values of each view.
std::vector<Tensor> copies_of(std::span<const TensorView> views);

/// For one thread at a time. Evaluations read the context's own snapshot and touch neither the
/// store nor another context. All other calls use the store and belong to the session's thread.
class DeviceContext {
 public:
  struct Parts {
    ParameterStore& store;
    Device& device;
    StepAccount& step_account;        // of train and fetch steps
    StepAccount& evaluation_account;  // of evaluations
    RewriteOptions rewrite = {};
    bool fused_update = true;      // RunOptions::fused_update
    Timeline* timeline = nullptr;  // records the calls of the store in train steps
    std::shared_ptr<const InputNormals> normals = {};
    std::uint64_t seed = 0;
    std::int64_t task = 0;
    BatchExamples examples = {};
  };
  /// Store, device, accounts and timeline must outlive the context.
  explicit DeviceContext(const Parts& parts);

  VariableSnapshot& snapshot() { return snapshot_; }
  /// Waits until the device has done all that was queued, so that a timeline has it. An error of
  /// the device is the step's that waits for it, and is not reported here.
  void settle() noexcept;
  /// Returns the number of examples of the batch that was read last.
  std::int64_t examples() const { return examples_; }
  PlanSet& plans() { return plans_; }
  /// Makes one step that updates nothing, on the snapshot (kEvaluate) or on the store (kFetch). The
  /// views are valid until the same values are read again. With `keep_locals` local variables do
  /// not change.
  std::span<const TensorView> read(StepKind kind, const Graph& graph,
                                   std::span<const Value> fetches, Mode mode, bool keep_locals,
                                   const std::function<void(Feed&)>& feed);

 private:
  void fill(Executor& executor, StepKind kind, const std::function<void(Feed&)>& feed,
            bool anew = false);
  ReadPlan& fill_open(StepKind kind, const Graph& graph, std::span<const Value> fetches, Mode mode,
                      bool keep_locals, const std::function<void(Feed&)>& feed);
  StepAccount& account_of(StepKind kind) const {
    return kind == StepKind::kFetch ? parts_.step_account : parts_.evaluation_account;
  }

  const Parts parts_;
  VariableSnapshot snapshot_;
  PlanSet plans_;
  std::map<const Graph*, BatchFeed> batches_;  // of graphs with open dimensions
  std::int64_t steps_ = 0;                     // the steps that updated nothing
  std::int64_t examples_ = 0;
};

}  // namespace paceline
