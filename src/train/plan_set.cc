#include "train/plan_set.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/machine_memory.h"
#include "exec/parameter_store.h"
#include "paceline/op.h"
#include "trace/timeline.h"

namespace paceline {
namespace {

constexpr std::int64_t kUnknown = -1;  // the number of rows is that of the ids

/// Steps that do what `steps` do and record an event for each call: "need w", "place w", "ready w",
/// "begin_step", "end_step". `variables` are the store's. `timeline` must outlive them.
class TracedSteps : public StoreSteps {
 public:
  TracedSteps(std::unique_ptr<StoreSteps> steps, std::span<const VariableSpec> variables,
              Timeline& timeline)
      : steps_(std::move(steps)),
        timeline_(timeline),
        begin_(timeline.label({"begin_step", "step", {}})),
        end_(timeline.label({"end_step", "step", {}})) {
    for (const VariableSpec& variable : variables) {
      const auto label = [&](const std::string& call) {
        return timeline.label({call + " " + variable.name,
                               call,
                               {{"variable", variable.name}, {"shape", variable.shape.str()}}});
      };
      calls_.push_back(
          {label("need"), label("place"), label("ready"),
           variable.sparse ? kUnknown : std::int64_t(byte_count(variable.dtype, variable.shape))});
    }
  }

  NormBy norm_by() const override { return steps_->norm_by(); }
  MemorySpace space() const override { return steps_->space(); }
  void count_waits(StepAccount& account) override { steps_->count_waits(account); }
  bool wants_next_rows() const override { return steps_->wants_next_rows(); }
  void begin_step(StepKind kind, std::span<const RowSet> rows,
                  const StepScalars& scalars) override {
    const TimelineScope scope(&timeline_, begin_);
    steps_->begin_step(kind, rows, scalars);
  }
  SumExchange* exchange() override { return steps_->exchange(); }
  AsyncView need(VariableId variable) override {
    const TimelineScope scope(&timeline_, of(variable).need, of(variable).bytes);
    return steps_->need(variable);
  }
  AsyncView place(VariableId variable) override {
    const TimelineScope scope(&timeline_, of(variable).place, of(variable).bytes);
    return steps_->place(variable);
  }
  OutputSink& sink(VariableId variable) override {
    const TimelineScope scope(&timeline_, of(variable).place, of(variable).bytes);
    return steps_->sink(variable);
  }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override {
    const TimelineScope scope(&timeline_, of(variable).ready, of(variable).bytes);
    steps_->ready(variable, contribution, event);
  }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override {
    const TimelineScope scope(&timeline_, end_);
    return steps_->end_step(clip_scale, next_rows);
  }

 private:
  struct Calls {
    const TimelineLabel *need, *place, *ready;
    std::int64_t bytes;
  };
  const Calls& of(VariableId variable) const { return calls_.at(std::size_t(variable)); }

  const std::unique_ptr<StoreSteps> steps_;
  Timeline& timeline_;
  const TimelineLabel *const begin_, *const end_;
  std::vector<Calls> calls_;  // by variable
};

// A plan of values that fit no memory would itself take long to make: the executor, which knows all
// that a step needs, comes too late then.
std::unique_ptr<Plan> plan_that_fits(const PlanRequest& request, const PlanSet::Parts& parts) {
  double inputs = 0;
  for (const auto& node : request.graph->nodes()) {
    if (node->op().name == "input") inputs += double(node->outputs()[0].bytes());
  }
  check_fits_machine("the inputs of a step of this batch need", inputs);
  return make_plan(request, parts.store.variables(), parts.device);
}

}  // namespace

ReadPlan::ReadPlan(std::unique_ptr<Plan> plan, std::unique_ptr<StoreSteps> steps,
                   LocalMemory& locals, Device& device, StepAccount& account)
    : plan_(std::move(plan)),
      executor_(*plan_, std::move(steps), locals, device, account),
      fetched_(executor_.fetches()) {}

std::span<const TensorView> ReadPlan::run(const StepRequest& request) {
  executor_.run(request);
  for (std::size_t i = 0; i < fetched_.size(); ++i) fetched_[i] = executor_.fetched(i);
  return fetched_;
}

PlanSet::TrainPlan PlanSet::make_train_plan(const Training& training,
                                            std::span<const Value> watch) {
  PlanRequest request;
  request.graph = &training.graph();
  request.fetches.assign(watch.begin(), watch.end());
  request.training = &training;
  request.rewrite = parts_.rewrite;
  request.stream_updates = parts_.fused_update && parts_.store.takes_streams();
  request.lend_updates = parts_.store.takes_lent();
  TrainPlan train;
  train.plan = plan_that_fits(request, parts_);
  std::unique_ptr<StoreSteps> steps = parts_.store.bind(train.plan->binding, train.plan->clip_norm);
  if (parts_.timeline != nullptr) {
    steps =
        std::make_unique<TracedSteps>(std::move(steps), parts_.store.variables(), *parts_.timeline);
  }
  train.executor = std::make_unique<Executor>(*train.plan, std::move(steps), locals(*request.graph),
                                              parts_.device, parts_.step_account);
  return train;
}

ReadPlan& PlanSet::read_plan(StepKind kind, const Graph& graph, std::span<const Value> fetches,
                             Mode mode, bool keep_locals) {
  for (const Entry& entry : entries_) {
    const bool same = entry.kind == kind && entry.mode == mode && entry.graph == &graph;
    if (same && std::ranges::equal(entry.fetches, fetches)) return *entry.plan;
  }
  PlanRequest request;
  request.graph = &graph;
  request.fetches.assign(fetches.begin(), fetches.end());
  request.run_assignments = !keep_locals;
  request.rewrite = parts_.rewrite;
  request.rewrite.inference = mode == Mode::kInfer;
  entries_.push_back({kind, mode, &graph, request.fetches, make_read_plan(kind, request)});
  return *entries_.back().plan;
}

std::unique_ptr<ReadPlan> PlanSet::make_read_plan(StepKind kind, const PlanRequest& request) {
  const bool fetch = kind == StepKind::kFetch;
  std::unique_ptr<Plan> plan = plan_that_fits(request, parts_);
  std::unique_ptr<StoreSteps> steps =
      fetch ? parts_.store.bind(plan->binding, 0) : make_snapshot_steps(parts_.snapshot);
  return std::make_unique<ReadPlan>(std::move(plan), std::move(steps), locals(*request.graph),
                                    parts_.device,
                                    fetch ? parts_.step_account : parts_.evaluation_account);
}

LocalMemory& PlanSet::locals(const Graph& graph) {
  auto& memory = locals_[{&graph, &parts_.device}];
  if (memory == nullptr) memory = std::make_unique<LocalMemory>(graph, parts_.device);
  return *memory;
}

const LocalMemory* PlanSet::used_locals(const Graph& graph) const {
  const auto found = locals_.find({&graph, &parts_.device});
  return found != locals_.end() ? found->second.get() : nullptr;
}

}  // namespace paceline
