// The plans of a session with their executors, one for each set of values that was asked of a
// graph.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "paceline/session.h"
#include "trace/timeline.h"
#include "train/snapshot_steps.h"

namespace paceline {

/// A plan without updates, and the values that it fetches.
class ReadPlan {
 public:
  ReadPlan(std::unique_ptr<Plan> plan, std::unique_ptr<StoreSteps> steps, LocalMemory& locals,
           Device& device, StepAccount& account);
  Executor& executor() { return executor_; }
  /// Runs a step; the views are valid until the next one.
  std::span<const TensorView> run(const StepRequest& request);

 private:
  std::unique_ptr<Plan> plan_;
  Executor executor_;
  std::vector<TensorView> fetched_;
};

/// Plans are made when they are first asked for. Store, device and accounts must outlive the set.
class PlanSet {
 public:
  struct Parts {
    ParameterStore& store;
    Device& device;
    VariableSnapshot& snapshot;
    StepAccount& step_account;        // of train and fetch steps
    StepAccount& evaluation_account;  // of evaluations
    RewriteOptions rewrite = {};
    bool fused_update = true;      // RunOptions'
    Timeline* timeline = nullptr;  // gets the train steps' calls of the store
  };
  explicit PlanSet(const Parts& parts) : parts_(parts) {}

  /// The train step's plan.
  struct TrainPlan {
    std::unique_ptr<Plan> plan;
    std::unique_ptr<Executor> executor;
  };
  TrainPlan make_train_plan(const Training& training, std::span<const Value> watch);

  /// Returns the plan that reads the snapshot (kEvaluate) or the store (kFetch). With `keep_locals`
  /// its steps do not change local variables.
  ReadPlan& read_plan(StepKind kind, const Graph& graph, std::span<const Value> fetches, Mode mode,
                      bool keep_locals);
  /// Returns the local variables of this graph on the set's device.
  LocalMemory& locals(const Graph& graph);
  /// Returns the same when a plan of the graph has used them; else null.
  const LocalMemory* used_locals(const Graph& graph) const;

 private:
  struct Entry {
    StepKind kind;
    Mode mode;
    const Graph* graph;
    std::vector<Value> fetches;
    std::unique_ptr<ReadPlan> plan;
  };
  std::unique_ptr<ReadPlan> make_read_plan(StepKind kind, const PlanRequest& request);

  Parts parts_;
  std::map<std::pair<const Graph*, const Device*>, std::unique_ptr<LocalMemory>> locals_;
  std::vector<Entry> entries_;
};

}  // namespace paceline
