// A timer for something that is done at intervals of steps or seconds.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "paceline/run_options.h"

namespace paceline {

/// Counts the interval from `begin`, which must be called each time that the thing is done. The
/// thing is due at a global step that is a multiple of Interval::steps (or at the first later one,
/// if other workers make steps too), and once Interval::seconds have passed.
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
