// The variables as one read of the store brought them, for the steps of evaluations.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "exec/parameter_store.h"
#include "paceline/session.h"

namespace paceline {

/// Values by VariableId, renewed by refresh and load; what it last read stays valid until the next.
class VariableSnapshot {
 public:
  explicit VariableSnapshot(ParameterStore& store) : store_(store) {}
  /// `with`: the variables, or the moving averages of those that have one.
  void refresh(EvaluateWith with);
  /// Reads the same from a checkpoint. Averages that it does not have among the slots of a variable
  /// (those of local steps) are read from the store. Throws kNotFound for a variable that it does
  /// not have, kFailedPrecondition for one of another shape.
  void load(const CheckpointReader& checkpoint, EvaluateWith with);
  bool empty() const { return values_.empty(); }
  const Tensor& value(VariableId variable) const { return values_[std::size_t(variable)]; }
  std::int64_t global_step() const { return global_step_; }

 private:
  ParameterStore& store_;
  std::vector<Tensor> values_;
  std::int64_t global_step_ = 0;
};

/// Steps that only read a snapshot and ask the store for nothing. The snapshot must outlive them.
std::unique_ptr<StoreSteps> make_snapshot_steps(const VariableSnapshot& snapshot);

}  // namespace paceline
