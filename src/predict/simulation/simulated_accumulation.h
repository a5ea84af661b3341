// The mean of several steps of a simulated worker is one contribution to the store below.
#pragma once

#include <cstdint>

#include "predict/simulation/simulated_store.h"

namespace paceline {

class SimulatedAccumulation : public SimulatedStore {
 public:
  /// `below` is borrowed.
  SimulatedAccumulation(SimulatedStore& below, int steps) : below_(below), each_(steps) {
    below.set_user(
        {.changed = [this] { user().changed(); },
         .spent = [this](double SpentSeconds::*on, double seconds) { user().spent(on, seconds); }});
  }

  bool may_begin(StepKind) override { return below_.may_begin(kind()); }
  void begin_step(StepKind, int plan) override { below_.begin_step(kind(), plan); }
  bool has(VariableId variable) const override { return below_.has(variable); }
  void ready(VariableId variable, const Done& done) override {
    kind() == StepKind::kTrain ? below_.ready(variable, done) : done();
  }
  void end_step(const Done& done) override {
    const bool contributes = kind() == StepKind::kTrain;
    ++made_;
    contributes ? below_.end_step(done) : done();
  }
  bool answered() const override { return below_.answered(); }
  std::int64_t global_step() const override { return below_.global_step(); }

 private:
  StepKind kind() const { return made_ % each_ == each_ - 1 ? StepKind::kTrain : StepKind::kFetch; }

  SimulatedStore& below_;
  const std::int64_t each_;
  std::int64_t made_ = 0;
};

}  // namespace paceline
