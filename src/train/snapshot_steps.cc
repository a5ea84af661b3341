#include "train/snapshot_steps.h"

#include <numeric>

#include "base/check.h"

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

std::unique_ptr<StoreSteps> make_snapshot_steps(const VariableSnapshot& snapshot) {
  return std::make_unique<SnapshotSteps>(snapshot);
}

}  // namespace paceline
