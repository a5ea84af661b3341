#include "train/snapshot_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "paceline/error.h"
#include "params/variable_arrays.h"
#include "train/initial_values.h"

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

void VariableSnapshot::load(const CheckpointReader& checkpoint, EvaluateWith with) {
  const std::span<const VariableSpec> specs = store_.variables();
  std::vector<Tensor> values;
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    const SavedVariable& saved = checkpoint.index().variable(spec.name);
    if (saved.shape != spec.shape) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("{} is a checkpoint of another model: {}: {} in the checkpoint, {} "
                              "in the model",
                              checkpoint.path(), spec.name, saved.shape.str(), spec.shape.str()));
    }
    SavedRows rows = checkpoint.read(spec.name);
    const bool averaged = spec.average_decay > 0 && with == EvaluateWith::kAverages;
    const auto slot = std::ranges::find(saved.slots, kAverageSlot, &SavedSlot::name);
    if (averaged && slot == saved.slots.end()) {
      const auto variable = VariableId(id);
      values.push_back(std::move(store_.read({&variable, 1}).front().slots.back()));
    } else {
      Tensor& value = averaged ? rows.slots[std::size_t(slot - saved.slots.begin())] : rows.value;
      values.push_back(as_type(value, spec.dtype));
    }
  }
  values_ = std::move(values);
  global_step_ = checkpoint.index().global_step;
}

std::unique_ptr<StoreSteps> make_snapshot_steps(const VariableSnapshot& snapshot) {
  return std::make_unique<SnapshotSteps>(snapshot);
}

}  // namespace paceline
