// The store of a simulated worker that makes local steps: its own one, and now and then the
// exchange with the store that all workers share.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "params/protocol/outer_turns.h"
#include "predict/simulation/machine_share.h"
#include "predict/simulation/simulated_job.h"
#include "predict/simulation/simulated_store.h"

namespace paceline {

class SimulatedOuterStore : public SimulatedStore {
 public:
  /// `shared` are the variables of `below`, whose plans are the fragments of the schedule.
  /// Everything is borrowed.
  SimulatedOuterStore(SimulatedStore& inner, SimulatedStore& below, const SimulatedStep& shared,
                      const OuterSchedule& schedule, bool in_rounds, VirtualTime& time,
                      MachineShare& machine);

  bool may_begin(StepKind) override;
  void begin_step(StepKind kind, int plan) override { inner_.begin_step(kind, plan); }
  bool has(VariableId variable) const override { return inner_.has(variable); }
  void ready(VariableId variable, const Done& done) override { inner_.ready(variable, done); }
  /// Exchanges what is due.
  void end_step(const Done& done) override;
  bool answered() const override { return true; }
  std::int64_t global_step() const override { return schedule_.steps_of(turns_.rounds()); }

 private:
  /// A part of an exchange: it waits until it may begin, and calls back when it is done.
  struct Part {
    double SpentSeconds::*waits_as;
    std::function<bool()> may_begin;
    std::function<void(const Done&)> act;
  };
  void go_on();
  void plan_parts();
  void settle();
  void take_over(int fragment);
  void contribute(int fragment);
  void pass(VariableId variable, double passes, const Done& done);

  SimulatedStore &inner_, &below_;
  const SimulatedStep& shared_;
  const OuterSchedule& schedule_;
  VirtualTime& time_;
  MachineShare& machine_;
  OuterTurns turns_;
  std::deque<Part> parts_ = {};
  Done ended_ = {};
  bool begun_ = false, busy_ = false, going_ = false;
  TimePoint waits_since_{};
};

}  // namespace paceline
