// For tests: a clock on which a day passes in 86 seconds.
#pragma once

#include "base/clock.h"
#include "base/real_clock.h"

namespace paceline {

class FastClock : public Clock {
 public:
  TimePoint now() const override { return begin_ + 1000 * (kRealClock.now() - begin_); }
  void sleep_until(TimePoint) override {}

 private:
  const TimePoint begin_ = kRealClock.now();
};

}  // namespace paceline
