#include "train/snapshot_steps.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "params/variable_arrays.h"
#include "train/saved_values.h"

namespace paceline {
namespace {

class SnapshotSteps : public StoreSteps, public StepHandle {
 public:
  explicit SnapshotSteps(const VariableSnapshot& snapshot) : snapshot_(snapshot) {}

  void begin_step(StepKind, std::span<const RowSet>, const StepScalars&) override {}
  AsyncView need(VariableId variable) override { return snapshot_.value(variable).view(); }
  AsyncView place(VariableId) override {
    PACELINE_CHECK(false && "an evaluation contributes nothing");
    return {};
  }
  void ready(VariableId, const Contribution&, const Event&) override {
    PACELINE_CHECK(false && "an evaluation contributes nothing");
  }
  StepHandle& end_step(float, std::span<const RowSet>) override { return *this; }
  std::int64_t global_step() override { return snapshot_.global_step(); }

 private:
  const VariableSnapshot& snapshot_;
};

}  // namespace

void VariableSnapshot::refresh(EvaluateWith with) {
  std::vector<VariableId> all(store_.variables().size());
  std::iota(all.begin(), all.end(), 0);
  values_.resize(all.size());
  for (VariableState& state : store_.read(all)) {
    const bool averaged = store_.variables()[std::size_t(state.variable)].average_decay > 0;
    Tensor& value = averaged && with == EvaluateWith::kAverages ? state.slots.back() : state.value;
    values_[std::size_t(state.variable)] = std::move(value);
  }
  global_step_ = store_.global_step();
}

void VariableSnapshot::load(const CheckpointReader& checkpoint, EvaluateWith with,
                            const ModuleNames& modules) {
  std::vector<VariableState> states(store_.variables().size());
  const std::vector<std::string> lines =
      take_values(states, store_.variables(), checkpoint, {.modules = modules, .with = with});
  if (!lines.empty()) refuse_other_model(checkpoint.path(), lines);
  if (with == EvaluateWith::kAverages) take_other_averages(states, checkpoint);
  values_.clear();
  for (VariableState& state : states) values_.push_back(std::move(state.value));
  global_step_ = checkpoint.index().global_step;
}

void VariableSnapshot::take_other_averages(std::vector<VariableState>& states,
                                           const CheckpointReader& checkpoint) const {
  for (std::size_t id = 0; id < states.size(); ++id) {
    const VariableSpec& spec = store_.variables()[id];
    const auto& saved = checkpoint.index().variables;
    const auto is_average = [&](const SavedVariable& variable) {
      return variable.name == spec.name &&
             std::ranges::find(variable.slots, kAverageSlot, &SavedSlot::name) !=
                 variable.slots.end();
    };
    if (spec.average_decay == 0 || std::ranges::any_of(saved, is_average)) continue;
    const auto variable = VariableId(id);
    states[id].value = store_.read({&variable, 1}).front().slots.back();
  }
}

void VariableSnapshot::share(const VariableSnapshot& other) {
  values_ = other.values_;
  global_step_ = other.global_step_;
}

std::unique_ptr<StoreSteps> make_snapshot_steps(const VariableSnapshot& snapshot) {
  return std::make_unique<SnapshotSteps>(snapshot);
}

}  // namespace paceline
