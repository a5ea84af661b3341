#include "base/clock.h"

#include <thread>

namespace paceline {

void RealClock::sleep_until(TimePoint time) { std::this_thread::sleep_until(time); }

void ManualClock::sleep_until(TimePoint time) {
  const Duration::rep target = time.time_since_epoch().count();
  Duration::rep current = now_.load();
  while (current < target && !now_.compare_exchange_weak(current, target)) {
  }
}

}  // namespace paceline
