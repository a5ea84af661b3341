// The thread of a simulated worker that makes its steps, one action after the other, and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "predict/simulation/simulated_job.h"
#include "predict/simulation/simulated_store.h"
#include "predict/simulation/transport.h"

namespace paceline {

/// How workers train together is its store's business.
class StepThread {
 public:
  /// Everything is borrowed.
  StepThread(const SimulatedJob& job, int index, SimulatedStore& store, VirtualTime& time,
             Transport& transport);
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;

  /// Goes on as far as it can. To be called whenever what it waits for may be there.
  void go_on();
  /// The number of steps made, and the times at which the counted ones began and ended.
  std::int64_t steps() const { return steps_; }
  bool finished() const;
  TimePoint counted_from() const { return counted_from_; }
  TimePoint counted_to() const { return counted_to_; }
  /// Of the counted steps.
  const SpentSeconds& spent() const { return spent_; }

 private:
  enum class Phase : std::uint8_t { kBegins, kActs, kEnds };
  bool step();
  bool begin();
  bool act();
  bool end();
  void run(const StepAction& action);
  void sum();
  bool wait(double SpentSeconds::*for_what);
  void stop_waiting();
  void spend(double SpentSeconds::*on, double seconds);
  void note_step();

  const SimulatedJob& job_;
  SimulatedStore& store_;
  VirtualTime& time_;
  MachineShare& machine_;
  const double slowness_;
  Phase phase_ = Phase::kBegins;
  std::size_t at_ = 0;
  bool busy_ = false, going_ = false;
  std::int64_t steps_ = 0;
  std::deque<const StepAction*> to_sum_;  // contributions of towers; the first is under way
  double SpentSeconds::*waits_for_ = nullptr;
  TimePoint waits_since_{}, counted_from_{}, counted_to_{};
  SpentSeconds spent_;
};

}  // namespace paceline
