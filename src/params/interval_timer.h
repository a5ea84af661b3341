// A timer for an action that is repeated at intervals of steps or seconds.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "paceline/run_options.h"

namespace paceline {

/// Tells when the action is due. The interval in seconds counts from `begin`, which must be called
/// at each action. The action is due at a global step that is a multiple of Interval::steps (or at
/// the first step after it, if other workers make steps, too), and once Interval::seconds have
/// passed.
class IntervalTimer {
 public:
  IntervalTimer(Interval every, TimePoint now) : every_(every), time_(now) {}
  void begin(std::int64_t global_step, TimePoint now) {
    step_ = global_step;
    time_ = now;
  }
  bool at(std::int64_t global_step, TimePoint now) const {
    if (every_.steps > 0 && global_step / every_.steps > step_ / every_.steps) return true;
    return every_.seconds > 0 && now - time_ >= std::chrono::duration<double>(every_.seconds);
  }

 private:
  Interval every_;
  std::int64_t step_ = 0;
  TimePoint time_;
};

}  // namespace paceline
