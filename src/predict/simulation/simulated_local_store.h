// The store of a simulated worker that applies its own contributions to values of its own.
#pragma once

#include "predict/simulation/simulated_job.h"
#include "predict/simulation/simulated_store.h"

namespace paceline {

class SimulatedLocalStore : public SimulatedStore {
 public:
  /// Everything is borrowed.
  SimulatedLocalStore(const SimulatedStep& step, VirtualTime& time, MachineShare& machine)
      : step_(step), time_(time), machine_(machine) {}

  bool may_begin(StepKind) override { return true; }
  void begin_step(StepKind, int) override {}
  bool has(VariableId) const override { return true; }
  void ready(VariableId variable, const Done& done) override;
  void end_step(const Done& done) override { done(); }
  bool answered() const override { return true; }
  std::int64_t global_step() const override { return 0; }  // nobody asks

 private:
  const SimulatedStep& step_;
  VirtualTime& time_;
  MachineShare& machine_;
};

}  // namespace paceline
