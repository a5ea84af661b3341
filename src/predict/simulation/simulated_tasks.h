// The tasks of a simulated job, with their stores, ready to run.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/virtual_time.h"
#include "params/hybrid/hybrid_steps.h"
#include "params/protocol/outer_schedule.h"
#include "predict/simulation/simulated_member.h"
#include "predict/simulation/simulated_world.h"
#include "predict/simulation/step_thread.h"

namespace paceline {

class SimulatedTasks {
 public:
  /// `job` is borrowed. Throws kInvalidArgument for a strategy that the simulator does not know.
  explicit SimulatedTasks(const SimulatedJob& job);

  VirtualTime& time() { return time_; }
  const VirtualTime& time() const { return time_; }
  const Transport& transport() const { return transport_; }
  /// Those that make steps, by worker.
  const std::vector<std::unique_ptr<StepThread>>& threads() const { return threads_; }
  /// By ps: the seconds in which it has applied rules.
  std::vector<double> applying() const;

 private:
  SimulatedWorld& share(SimulatedStep step, const AggregationSpec& aggregation);
  void make_worlds();
  void make_ps_job(SimulatedWorld& world);
  void make_members(SimulatedWorld& world);
  void start_ps_job(SimulatedWorld& world);
  SimulatedStore& local_store(int worker);
  SimulatedStore& store_of(int worker);
  MachineShare& machine_of(int worker);
  Duration delay(int worker);

  const SimulatedJob& job_;
  VirtualTime time_;
  Transport transport_;
  std::optional<OuterSchedule> schedule_;
  std::optional<HybridPlaces> places_;
  std::deque<SimulatedStep> shared_;  // what the worlds share
  std::deque<SimulatedWorld> worlds_;
  std::vector<std::unique_ptr<SimulatedMember>> members_;
  std::vector<std::unique_ptr<SimulatedStore>> stores_;  // that are no tasks of a world
  std::vector<std::unique_ptr<StepThread>> threads_;
};

}  // namespace paceline
