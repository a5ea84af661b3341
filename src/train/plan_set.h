// The plans of a session with their executors: one plan for each set of values that was asked of a
// graph.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "graph/open_graph.h"
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
  /// Runs a step. The views are valid until the next step.
  std::span<const TensorView> run(const StepRequest& request);

 private:
  std::unique_ptr<Plan> plan_;
  Executor executor_;
  std::vector<TensorView> fetched_;
};

class PlanSet;

/// The number of examples of a batch: a number, or an open dimension with its usual size.
struct BatchExamples {
  std::int64_t dimension = 0, usual = 0;
  /// Returns the number of examples of a batch of these sizes. An open dimension without a size has
  /// the usual size of the graph. If the graph has none, returns `usual`.
  std::int64_t of(OpenSizes sizes, const Graph& graph) const;
};

/// The plans with which one device makes the train steps of a training: a single plan, or one for
/// each combination of sizes of the graph's open dimensions. The plans share the steps of the
/// store, and the memory of a step.
class TrainPlans {
 public:
  TrainPlans(PlanSet& set, Training training, std::vector<Value> watch,
             const BatchExamples& examples);
  TrainPlans(const TrainPlans&) = delete;
  TrainPlans& operator=(const TrainPlans&) = delete;

  /// True if the graph has open dimensions.
  bool open() const { return open_; }
  /// The plan that was chosen last; at first the plan of the usual sizes.
  const Plan& plan() const { return *chosen_->plan; }
  Executor& executor() const { return *chosen_->executor; }
  /// Returns the number of examples of a batch of the chosen plan.
  std::int64_t examples() const { return examples_; }
  /// Chooses the plan for these sizes, and makes it if it is not kept. Dimensions without a size
  /// have the usual one. Local variables with open dimensions begin at zero whenever the sizes
  /// change.
  Executor& choose(const OpenSizes& sizes);

  bool is_of(const Graph& graph) const { return &training_.graph() == &graph; }
  /// The graph, or the copy of it, whose plan was chosen.
  const Graph& chosen() const { return *chosen_->graph; }
  /// Drops the plan of a copy of the graph that is about to be destroyed.
  void drop(const Graph& copy);

 private:
  struct Sized {
    const Graph* graph;
    std::unique_ptr<Plan> plan;
    /// Null before it is made, and after it was dropped because its memory was too small.
    std::unique_ptr<Executor> executor;
  };
  Sized& add(const Graph& graph, const Training& training, const std::vector<Value>& watch);
  void make_executor(Sized& sized);
  void bind(const Plan& plan);
  void check_rows(const PlanBinding& binding) const;

  PlanSet& set_;
  const Training training_;
  const std::vector<Value> watch_;
  const bool open_;
  const BatchExamples counts_;
  std::int64_t examples_;
  PlanBinding bound_;
  std::shared_ptr<StoreSteps> steps_;
  std::shared_ptr<Buffer> arena_;
  std::vector<std::unique_ptr<Sized>> plans_;
  Sized* chosen_ = nullptr;
};

/// Plans are made when they are first asked for. Store, device and accounts must outlive the set.
/// Of a graph with open dimensions there are plans for the sizes that were used last.
class PlanSet {
 public:
  struct Parts {
    ParameterStore& store;
    Device& device;
    VariableSnapshot& snapshot;
    StepAccount& step_account;        // of train and fetch steps
    StepAccount& evaluation_account;  // of evaluations
    RewriteOptions rewrite = {};
    bool fused_update = true;      // RunOptions::fused_update
    Timeline* timeline = nullptr;  // records the calls of the store in train steps
  };
  explicit PlanSet(const Parts& parts) : parts_(parts) {}

  /// Returns the plans of a training, which live as long as the set. Throws
  /// kFailedPrecondition if an open dimension has no usual size.
  TrainPlans& make_train_plans(const Training& training, std::span<const Value> watch,
                               const BatchExamples& examples);

  /// Returns the plan that reads the snapshot (kEvaluate) or the store (kFetch). With `keep_locals`
  /// its steps do not change local variables. Open dimensions without a size have the usual one;
  /// throws kFailedPrecondition, naming one that has neither.
  ReadPlan& read_plan(StepKind kind, const Graph& graph, std::span<const Value> fetches, Mode mode,
                      bool keep_locals, const OpenSizes& sizes = {});
  /// True if the graph has open dimensions.
  bool is_open(const Graph& graph);
  /// Returns the local variables of this graph on the set's device. Those with open dimensions have
  /// the sizes that a training has chosen; if none has, they are left out.
  LocalMemory& locals(const Graph& graph);
  /// Returns the local variables of the graph if one of its plans has used them; else null.
  const LocalMemory* used_locals(const Graph& graph) const;
  /// Sets all local variables of the graph to zero.
  void reset_locals(const Graph& graph);

 private:
  friend class TrainPlans;
  struct Entry {
    StepKind kind;
    Mode mode;
    // The graph of the fetches: the one that was asked for, or its copy.
    const Graph* graph;
    std::vector<Value> fetches;
    std::unique_ptr<ReadPlan> plan;
  };
  struct OpenGraph {
    std::size_t nodes = 0;  // the graph's nodes when its inputs were last read
    /// The inputs and local variables that have open dimensions.
    std::vector<Value> inputs;
    std::vector<std::unique_ptr<SizedCopy>> copies;  // those that were used last come last
  };
  /// The number of copies of a graph that are kept, the ones used last; a copy that a training has
  /// chosen is kept in any case. Sizes that come again then need no new plan.
  static constexpr std::size_t kMostCopies = 16;

  ReadPlan& read_plan_of(StepKind kind, const Graph& graph, std::span<const Value> fetches,
                         Mode mode, bool keep_locals);
  std::unique_ptr<ReadPlan> make_read_plan(StepKind kind, const PlanRequest& request);
  LocalMemory& memory(const Graph& graph);
  /// Notes that a training uses this copy now: sets its local variables with open dimensions to
  /// zero, unless another training uses the copy, too.
  void changed_sizes(const TrainPlans& plans, const Graph& copy);
  const Graph& chosen(const Graph& graph) const;
  OpenGraph& open_graph(const Graph& graph);
  /// Throws kFailedPrecondition if an open dimension on which the values depend has no size.
  SizedCopy& copy(const Graph& graph, const OpenSizes& sizes, std::span<const Value> values);
  void drop_one(OpenGraph& open);

  Parts parts_;
  std::map<const Graph*, OpenGraph> open_;
  std::map<const Graph*, std::unique_ptr<LocalMemory>> locals_;  // of graphs and of their copies
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<TrainPlans>> train_plans_;
};

}  // namespace paceline
