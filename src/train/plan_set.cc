#include "train/plan_set.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/machine_memory.h"
#include "exec/parameter_store.h"
#include "graph/passes.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "trace/timeline.h"

namespace paceline {
namespace {

// The bytes of a sparse variable are not known: they depend on the number of ids.
constexpr std::int64_t kUnknown = -1;
// The store has room for batches that read this many times the rows of a batch of the usual size.
constexpr std::int64_t kMostRowsOfUsual = 8;

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

// Refuses inputs that do not fit into memory before it makes the plan, which would take long. The
// executor knows all that a step needs, but would refuse too late.
std::unique_ptr<Plan> plan_that_fits(const PlanRequest& request, const PlanSet::Parts& parts) {
  double inputs = 0;
  for (const auto& node : request.graph->nodes()) {
    if (node->op().name == "input") inputs += double(node->outputs()[0].bytes());
  }
  check_fits_machine("the inputs of a step of this batch need", inputs);
  return make_plan(request, parts.store.variables(), parts.device);
}

// Returns those of the inputs on which the values depend.
std::vector<Value> inputs_below(const Graph& graph, std::span<const Value> inputs,
                                std::span<const Value> values) {
  const std::vector<bool> live = RewriteSource{graph, values, false}.live();
  std::vector<Value> below;
  std::ranges::copy_if(inputs, std::back_inserter(below),
                       [&](const Value& input) { return live[std::size_t(input.node().id())]; });
  return below;
}

}  // namespace

std::int64_t BatchExamples::of(OpenSizes sizes, const Graph& graph) const {
  sizes.insert(graph.usual_sizes().begin(), graph.usual_sizes().end());
  const std::int64_t examples = sized(dimension, sizes);
  return is_open(examples) ? usual : examples;
}

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

TrainPlans::TrainPlans(PlanSet& set, Training training, std::vector<Value> watch,
                       const BatchExamples& examples)
    : set_(set),
      training_(std::move(training)),
      watch_(std::move(watch)),
      open_(set.is_open(training_.graph())),
      counts_(examples),
      examples_(examples.usual) {
  if (open_) {
    choose({});
  } else {
    chosen_ = &add(training_.graph(), training_, watch_);
    make_executor(*chosen_);
  }
}

Executor& TrainPlans::choose(const OpenSizes& sizes) {
  if (!open_) return executor();
  for (const auto& each : plans_) {
    // The executor that was chosen before this one may still hold memory that is too small by now.
    if (each.get() != chosen_ && each->executor && each->executor->arena() != arena_) {
      each->executor.reset();
    }
  }
  const SizedCopy& copy = set_.copy(training_.graph(), sizes, {&training_.loss, 1});
  auto known =
      std::ranges::find(plans_, &copy.graph(), [](const auto& each) { return each->graph; });
  Sized& plan =
      known != plans_.end() ? **known : add(copy.graph(), copy.of(training_), copy.of(watch_));
  make_executor(plan);
  if (chosen_ != &plan) set_.changed_sizes(*this, copy.graph());
  chosen_ = &plan;
  examples_ = counts_.of(copy.sizes(), training_.graph());
  return executor();
}

TrainPlans::Sized& TrainPlans::add(const Graph& graph, const Training& training,
                                   const std::vector<Value>& watch) {
  const PlanSet::Parts& parts = set_.parts_;
  PlanRequest request;
  request.graph = &graph;
  request.fetches = watch;
  request.training = &training;
  request.rewrite = parts.rewrite;
  request.stream_updates = parts.fused_update && parts.store.takes_streams();
  request.lend_updates = parts.store.takes_lent();
  std::unique_ptr<Plan> plan = plan_that_fits(request, parts);
  if (steps_ == nullptr) bind(*plan);
  check_rows(plan->binding);
  plans_.emplace_back(new Sized{&graph, std::move(plan), nullptr});
  return *plans_.back();
}

// All executors share the memory of the largest plan so far. The chosen executor may be making a
// step in older memory, which it keeps.
void TrainPlans::make_executor(Sized& sized) {
  const PlanSet::Parts& parts = set_.parts_;
  if (sized.executor != nullptr && sized.executor->arena() == arena_) return;
  sized.executor = std::make_unique<Executor>(*sized.plan, steps_, set_.memory(*sized.graph),
                                              parts.device, parts.step_account, arena_);
  if (std::exchange(arena_, sized.executor->arena()) == sized.executor->arena()) return;
  for (const auto& each : plans_) {
    if (each.get() != &sized && each.get() != chosen_) each->executor.reset();
  }
}

void TrainPlans::bind(const Plan& plan) {
  const PlanSet::Parts& parts = set_.parts_;
  bound_ = plan.binding;
  for (PlanBinding::Use& use : bound_.uses) {
    const VariableSpec& spec = parts.store.variables()[std::size_t(use.variable)];
    if (open_ && spec.sparse && use.most_rows != spec.shape[0]) use.most_rows *= kMostRowsOfUsual;
  }
  std::unique_ptr<StoreSteps> steps = parts.store.bind(bound_, plan.clip_norm);
  if (parts.timeline != nullptr) {
    steps =
        std::make_unique<TracedSteps>(std::move(steps), parts.store.variables(), *parts.timeline);
  }
  steps_ = steps_on(parts.device, std::move(steps), plan);
}

void TrainPlans::check_rows(const PlanBinding& binding) const {
  for (const PlanBinding::Use& use : binding.uses) {
    const auto bound = std::ranges::find(bound_.uses, use.variable, &PlanBinding::Use::variable);
    PACELINE_CHECK(bound != bound_.uses.end());
    if (use.most_rows <= bound->most_rows) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[session] a batch reads up to {} rows of '{}', and {} are the most: "
                    "that is {} times a batch of the usual size (Graph::open)",
                    use.most_rows, set_.parts_.store.variables()[std::size_t(use.variable)].name,
                    bound->most_rows, kMostRowsOfUsual));
  }
}

void TrainPlans::drop(const Graph& copy) {
  std::erase_if(plans_, [&](const auto& each) { return each->graph == &copy; });
}

TrainPlans& PlanSet::make_train_plans(const Training& training, std::span<const Value> watch,
                                      const BatchExamples& examples) {
  train_plans_.push_back(std::make_unique<TrainPlans>(
      *this, training, std::vector<Value>(watch.begin(), watch.end()), examples));
  return *train_plans_.back();
}

ReadPlan& PlanSet::read_plan(StepKind kind, const Graph& graph, std::span<const Value> fetches,
                             Mode mode, bool keep_locals, const OpenSizes& sizes) {
  if (!is_open(graph)) return read_plan_of(kind, graph, fetches, mode, keep_locals);
  const SizedCopy& copy = this->copy(graph, sizes, fetches);
  return read_plan_of(kind, copy.graph(), copy.of(fetches), mode, keep_locals);
}

ReadPlan& PlanSet::read_plan_of(StepKind kind, const Graph& graph, std::span<const Value> fetches,
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
  return std::make_unique<ReadPlan>(std::move(plan), std::move(steps), memory(*request.graph),
                                    parts_.device,
                                    fetch ? parts_.step_account : parts_.evaluation_account);
}

PlanSet::OpenGraph& PlanSet::open_graph(const Graph& graph) {
  OpenGraph& open = open_[&graph];
  if (open.nodes == graph.nodes().size()) return open;
  open.inputs = open_inputs(graph);
  open.nodes = graph.nodes().size();
  return open;
}

bool PlanSet::is_open(const Graph& graph) { return !open_graph(graph).inputs.empty(); }

SizedCopy& PlanSet::copy(const Graph& graph, const OpenSizes& sizes,
                         std::span<const Value> values) {
  OpenGraph& open = open_graph(graph);
  OpenSizes all = sizes;
  all.insert(graph.usual_sizes().begin(), graph.usual_sizes().end());
  if (!is_sized(open.inputs, all)) {
    check_sized(inputs_below(graph, open.inputs, values), all);
    for (std::string& name : open_names(open.inputs)) all.emplace(std::move(name), 1);
  }
  const auto known =
      std::ranges::find(open.copies, all, [](const auto& copy) { return copy->sizes(); });
  if (known != open.copies.end()) {
    std::rotate(known, known + 1, open.copies.end());
    open.copies.back()->follow();
    return *open.copies.back();
  }
  if (open.copies.size() >= kMostCopies) drop_one(open);
  open.copies.push_back(std::make_unique<SizedCopy>(graph, std::move(all)));
  const Graph& copied = open.copies.back()->graph();
  locals_[&copied] = std::make_unique<LocalMemory>(copied, parts_.device, &memory(graph));
  return *open.copies.back();
}

// Drops the copy that was used longest ago, but none that a training has chosen: the inputs of its
// plan may be filled already.
void PlanSet::drop_one(OpenGraph& open) {
  const auto is_chosen = [&](const auto& copy) {
    return std::ranges::any_of(
        train_plans_, [&](const auto& plans) { return &plans->chosen() == &copy->graph(); });
  };
  const auto oldest = std::ranges::find_if_not(open.copies, is_chosen);
  if (oldest == open.copies.end()) return;
  const Graph& copy = (*oldest)->graph();
  std::erase_if(entries_, [&](const Entry& entry) { return entry.graph == &copy; });
  for (const auto& plans : train_plans_) plans->drop(copy);
  locals_.erase(&copy);
  open.copies.erase(oldest);
}

LocalMemory& PlanSet::memory(const Graph& graph) {
  auto& memory = locals_[&graph];
  if (memory == nullptr) memory = std::make_unique<LocalMemory>(graph, parts_.device);
  return *memory;
}

const Graph& PlanSet::chosen(const Graph& graph) const {
  const auto found =
      std::ranges::find_if(train_plans_, [&](const auto& plans) { return plans->is_of(graph); });
  return found != train_plans_.end() ? (*found)->chosen() : graph;
}

LocalMemory& PlanSet::locals(const Graph& graph) { return memory(chosen(graph)); }

const LocalMemory* PlanSet::used_locals(const Graph& graph) const {
  const auto found = locals_.find(&chosen(graph));
  return found != locals_.end() ? found->second.get() : nullptr;
}

// Sets the copy's local variables to zero, unless another training has chosen the copy: then they
// go on.
void PlanSet::changed_sizes(const TrainPlans& plans, const Graph& copy) {
  const bool used = std::ranges::any_of(train_plans_, [&](const auto& each) {
    return each.get() != &plans && &each->chosen() == &copy;
  });
  if (!used) memory(copy).reset();
}

void PlanSet::reset_locals(const Graph& graph) {
  memory(graph).reset();
  for (const auto& copy : open_graph(graph).copies) memory(copy->graph()).reset();
}

}  // namespace paceline
