// The store of a simulated worker of `hybrid`: sparse variables on ps tasks, the others reduced
// among the workers, whose members commit the rounds of both.
#pragma once

#include <functional>

#include "params/hybrid/hybrid_steps.h"
#include "predict/simulation/simulated_member.h"
#include "predict/simulation/simulated_worker.h"

namespace paceline {

class SimulatedHybridStore : public SimulatedStore {
 public:
  /// Everything is borrowed.
  SimulatedHybridStore(const HybridPlaces& places, SimulatedWorker& sparse, SimulatedMember& dense,
                       bool clipped);

  /// Before its first step a worker asks every ps whether the round is open.
  bool may_begin(StepKind kind) override;
  void begin_step(StepKind kind, int plan) override;
  bool has(VariableId variable) const override {
    return part(variable).has(places_.there(variable));
  }
  void ready(VariableId variable, const Done& done) override {
    part(variable).ready(places_.there(variable), done);
  }
  /// The dense part is committed once the sparse one is on every ps.
  void end_step(const Done& done) override;
  bool answered() const override { return sparse_.answered(); }
  std::int64_t global_step() const override { return sparse_.global_step(); }

 private:
  SimulatedStore& part(VariableId variable) const {
    return places_.is_sparse(variable) ? static_cast<SimulatedStore&>(sparse_) : dense_;
  }
  void look();
  void commit(const Done& apply);

  const HybridPlaces& places_;
  SimulatedWorker& sparse_;
  SimulatedMember& dense_;
  const bool clipped_;
  bool asked_ = false;
  bool awaits_receipt_ = false;
  Done apply_ = {};  // waits for the clip scale
};

}  // namespace paceline
