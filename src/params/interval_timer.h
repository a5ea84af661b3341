// When something that is done at intervals is to be done again.
#pragma once

#include <chrono>
#include <cstdint>

#include "paceline/run_options.h"

namespace paceline {

/// Counted from `begin`, and then from each time that it was due: at global steps that are
/// multiples of Interval::steps (or the first after one, where others make steps too).
class IntervalTimer {
 public:
  explicit IntervalTimer(Interval every) : every_(every) {}
  void begin(std::int64_t global_step) {
    step_ = global_step;
    time_ = std::chrono::steady_clock::now();
  }
  bool at(std::int64_t global_step) const {
    if (every_.steps > 0 && global_step / every_.steps > step_ / every_.steps) return true;
    return every_.seconds > 0 && std::chrono::steady_clock::now() - time_ >=
                                     std::chrono::duration<double>(every_.seconds);
  }

 private:
  Interval every_;
  std::int64_t step_ = 0;
  std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
};

}  // namespace paceline
