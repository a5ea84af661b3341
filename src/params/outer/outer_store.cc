#include "params/outer/outer_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/error.h"
#include "params/forwarding_control.h"
#include "params/forwarding_store.h"
#include "params/local/local_store.h"
#include "params/outer/outer_exchange.h"
#include "params/protocol/outer_schedule.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// The control of a job whose workers make local steps between its rounds.

/// The part of the store that the store's control uses.
class OuterState {
 public:
  virtual ~OuterState() = default;
  virtual const OuterSchedule& schedule() const = 0;
  /// Waits until the last round of this worker is closed.
  virtual void settle() = 0;
  /// Adds the slots that this worker keeps to the state.
  virtual void add_slots(TaskState& state) = 0;
  /// Gives the store the restored state, which has these slots, before training begins.
  virtual void restored(TaskState state) = 0;
};

/// Counts local steps; the control `below` counts rounds.
class OuterControl : public ForwardingControl {
 public:
  OuterControl(std::shared_ptr<JobControl> below, std::shared_ptr<OuterState> store, int worker)
      : ForwardingControl(std::move(below)), store_(std::move(store)), worker_(worker) {}

  /// Waits for the last round, unless the worker is interrupted.
  void set_done() override {
    try {
      store_->settle();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;
    }
    below_->set_done();
  }
  void restore(std::span<const TaskState> states) override {
    std::vector<TaskState> rounds(states.begin(), states.end());
    const auto own = std::ranges::find(states, worker_, &TaskState::worker);
    if (own != states.end()) store_->restored(*own);
    for (TaskState& state : rounds) state.step = store_->schedule().rounds_of(state.step);
    below_->restore(rounds);
  }
  std::int64_t next_step() const override {
    return store_->schedule().steps_of(below_->next_step());
  }
  std::optional<TaskState> restored() const override {
    std::optional<TaskState> state = below_->restored();
    if (state) state->step = store_->schedule().steps_of(state->step);
    return state;
  }
  void add_own_state(TaskState& state) const override { store_->add_slots(state); }

 private:
  const std::shared_ptr<OuterState> store_;
  const int worker_;
};

constexpr std::string_view kInner = "inner/";

// A moving average is kept only of the common values, so the inner variables have none.
std::vector<VariableSpec> inner_variables(std::vector<VariableSpec> variables) {
  for (VariableSpec& variable : variables) variable.average_decay = 0;
  return variables;
}

std::vector<float> outer_rates(std::span<const VariableSpec> below) {
  std::vector<float> rates;
  for (const VariableSpec& variable : below) rates.push_back(variable.rule.learning_rate());
  return rates;
}

PlanBinding reads_all(std::span<const VariableSpec> variables) {
  PlanBinding plan;
  for (std::size_t v = 0; v < variables.size(); ++v) plan.uses.push_back({VariableId(v)});
  return plan;
}

class OuterStore : public ForwardingStore<SavableStore>, public OuterState {
 public:
  OuterStore(JoinedStrategy below, std::vector<VariableSpec> variables, const OuterOptions& how,
             const JoinOptions& options)
      : ForwardingStore(*below.store),
        below_(std::move(below.store)),
        below_control_(std::move(below.control)),
        variables_(std::move(variables)),
        schedule_(outer_schedule_of(variables_, how)),
        in_rounds_(how.delay == 0),
        worker_(options.cluster.task.index),
        pool_(options.pool),
        account_(options.account),
        inner_(make_local_store(inner_variables(variables_), options.pool, options.account,
                                options.timeline, options.cluster.train.on_nan,
                                options.cluster.task.str())),
        inner_values_(inner_->bind(reads_all(variables_), 0)) {}

  std::span<const VariableSpec> variables() const override { return variables_; }
  std::span<const VariableSpec> kept_variables() const override { return below_->variables(); }
  bool takes_streams() const override { return inner_->takes_streams(); }
  bool takes_lent() const override { return inner_->takes_lent(); }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override;
  void write(std::vector<VariableState> states, std::int64_t global_step) override {
    below_->write(std::move(states), schedule_.rounds_of(global_step));
    exchange_.reset();
  }
  std::int64_t global_step() const override { return schedule_.steps_of(below_->global_step()); }
  std::int64_t skipped() const override { return inner_->skipped(); }

  std::vector<std::string> prepare_saving(const std::string& folder) override {
    return below_->prepare_saving(folder);
  }
  void mark() override { below_->mark(); }
  SavedShards write_shards(const std::string& folder) override {
    SavedShards shards = below_->write_shards(folder);
    shards.global_step = schedule_.steps_of(shards.global_step);
    for (TaskState& other : shards.others) other.step = schedule_.steps_of(other.step);
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      if (variables_[v].trained) shards.variables[v].local_rule = variables_[v].rule.name();
    }
    return shards;
  }

  const OuterSchedule& schedule() const override { return schedule_; }
  void settle() override {
    if (exchange_) exchange_->settle();
  }
  void add_slots(TaskState& state) override;
  void restored(TaskState state) override { restored_ = std::move(state); }

  /// Returns the exchange. The first call makes it, from the common values.
  OuterExchange& exchange();

 private:
  std::vector<VariableState> beginning();

  const std::shared_ptr<SavableStore> below_;
  const std::shared_ptr<JobControl> below_control_;
  const std::vector<VariableSpec> variables_;
  const OuterSchedule schedule_;
  const bool in_rounds_;
  const int worker_;
  ThreadPool* const pool_;
  StepAccount* const account_;
  const std::unique_ptr<SavableStore> inner_;
  const std::unique_ptr<StoreSteps> inner_values_;
  std::optional<TaskState> restored_;
  std::optional<OuterExchange> exchange_;
  bool trains_ = false;
};

class OuterSteps : public StoreSteps {
 public:
  OuterSteps(OuterStore& store, std::unique_ptr<StoreSteps> inner)
      : store_(store), inner_(std::move(inner)) {}

  NormBy norm_by() const override { return inner_->norm_by(); }
  void count_waits(StepAccount& account) override { inner_->count_waits(account); }
  void begin_step(StepKind kind, std::span<const RowSet> rows,
                  const StepScalars& scalars) override {
    store_.exchange();
    kind_ = kind;
    examples_ = scalars.examples;
    inner_->begin_step(kind, rows, scalars);
  }
  AsyncView need(VariableId variable) override { return inner_->need(variable); }
  AsyncView place(VariableId variable) override { return inner_->place(variable); }
  OutputSink& sink(VariableId variable) override { return inner_->sink(variable); }
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override {
    inner_->ready(variable, contribution, event);
  }
  StepHandle& end_step(float clip_scale, std::span<const RowSet>) override {
    inner_->end_step(clip_scale, {});
    if (kind_ == StepKind::kTrain) store_.exchange().step_made(examples_);
    handle_.step = store_.schedule().steps_of(store_.exchange().rounds());
    return handle_;
  }

 private:
  struct Handle : StepHandle {
    std::int64_t global_step() override { return step; }
    std::int64_t step = 0;
  };

  OuterStore& store_;
  const std::unique_ptr<StoreSteps> inner_;
  StepKind kind_ = StepKind::kTrain;
  std::int64_t examples_ = 0;
  Handle handle_;
};

std::unique_ptr<StoreSteps> OuterStore::bind(const PlanBinding& plan, float clip_norm) {
  if (std::ranges::none_of(plan.uses, &PlanBinding::Use::updated)) {
    return below_->bind(plan, clip_norm);
  }
  if (std::exchange(trains_, true)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "[local steps] a job with --strategy local_sgd trains one plan, and this is another: "
        "use --strategy sync, or without parameter servers --strategy allreduce");
  }
  return std::make_unique<OuterSteps>(*this, inner_->bind(plan, clip_norm));
}

// Returns the values and slots with which the copies begin. The slots continue from the checkpoint
// if it has slots of this rule.
std::vector<VariableState> OuterStore::beginning() {
  std::vector<VariableId> all(variables_.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<VariableState> states = below_->read(all);
  for (VariableState& state : states) {
    const VariableSpec& spec = inner_->variables()[std::size_t(state.variable)];
    state.slots.clear();
    if (!restored_) continue;
    const std::vector<SlotSpec> slots = slots_of(spec);
    for (const SlotSpec& slot : slots) {
      const auto saved = std::ranges::find(restored_->local, inner_slot_name(spec.name, slot.name),
                                           &NamedTensor::name);
      const std::int64_t elements = slot.scalar ? 1 : spec.shape.elements();
      if (saved == restored_->local.end() || saved->tensor.elements() != elements) break;
      state.slots.push_back(saved->tensor);
    }
    if (state.slots.size() != slots.size()) state.slots.clear();
  }
  return states;
}

// The inner store is never marked, so the exchange may change its values where they lie.
OuterExchange& OuterStore::exchange() {
  if (exchange_) return *exchange_;
  below_control_->wait_initialised();
  if (!restored_) restored_ = below_control_->restored();
  inner_->write(beginning(), 0);
  restored_.reset();
  inner_values_->begin_step(StepKind::kFetch, {}, {});
  std::vector<TensorView> local;
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    local.push_back(inner_values_->need(VariableId(v)).view);
  }
  const auto rounds = in_rounds_ ? std::nullopt : std::optional(below_control_->next_step());
  return exchange_.emplace(*below_, schedule_, rounds, std::move(local),
                           outer_rates(below_->variables()), pool_, account_);
}

void OuterStore::add_slots(TaskState& state) {
  if (!exchange_) return;
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const VariableSpec& spec = inner_->variables()[v];
    const std::vector<SlotSpec> slots = slots_of(spec);
    if (!spec.trained || slots.empty()) continue;
    const VariableId id = VariableId(v);
    VariableState inner = std::move(inner_->read({&id, 1}).front());
    for (std::size_t s = 0; s < slots.size(); ++s) {
      state.local.push_back({inner_slot_name(spec.name, slots[s].name), std::move(inner.slots[s])});
    }
  }
}

}  // namespace

std::string inner_slot_name(std::string_view variable, std::string_view slot) {
  return fmt::format("{}{}/{}", kInner, variable, slot);
}

bool is_inner_slot(std::string_view name) { return name.starts_with(kInner); }

std::int64_t outer_rounds(const std::vector<VariableSpec>& variables, const OuterOptions& how,
                          std::int64_t steps) {
  return outer_schedule_of(variables, how).rounds_for(steps);
}

JoinedStrategy with_outer_rule(JoinedStrategy below, std::vector<VariableSpec> variables,
                               const OuterOptions& how, const JoinOptions& options) {
  const std::shared_ptr<JobControl> control = below.control;
  auto store = std::make_shared<OuterStore>(std::move(below), std::move(variables), how, options);
  return {store, std::make_shared<OuterControl>(control, store, options.cluster.task.index)};
}

}  // namespace paceline
