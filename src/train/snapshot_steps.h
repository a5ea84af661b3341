// The values of variables at one moment, read from a store or a checkpoint, for evaluations.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "exec/parameter_store.h"
#include "paceline/session.h"

namespace paceline {

/// Values by VariableId. refresh() and load() renew them; values that were read stay valid until
/// then.
class VariableSnapshot {
 public:
  explicit VariableSnapshot(ParameterStore& store) : store_(store) {}
  /// Reads the variables, or the moving averages of those that have one.
  void refresh(EvaluateWith with);
  /// Reads the variables, or their averages, from a checkpoint. `modules` has the names of modules
  /// in a file of PyTorch tensors. Averages that the checkpoint does not have (those of local
  /// steps) are read from the store. Throws kFailedPrecondition that lists the variables which the
  /// checkpoint does not have, or has in another shape or type.
  void load(const CheckpointReader& checkpoint, EvaluateWith with, const ModuleNames& modules = {});
  /// Takes the values of another snapshot of the same variables; both then share their memory.
  void share(const VariableSnapshot& other);
  bool empty() const { return values_.empty(); }
  const Tensor& value(VariableId variable) const { return values_[std::size_t(variable)]; }
  std::int64_t global_step() const { return global_step_; }

 private:
  void take_other_averages(std::vector<VariableState>& states,
                           const CheckpointReader& checkpoint) const;

  ParameterStore& store_;
  std::vector<Tensor> values_;
  std::int64_t global_step_ = 0;
};

/// Steps that only read a snapshot and ask the store for nothing. The snapshot must outlive them.
std::unique_ptr<StoreSteps> make_snapshot_steps(const VariableSnapshot& snapshot);

}  // namespace paceline
