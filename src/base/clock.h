// The clocks that code is given: the real one, and one that tests advance by hand.
#pragma once

#include <atomic>
#include <chrono>

namespace paceline {

using Duration = std::chrono::nanoseconds;
/// A moment on a clock's own scale; only differences mean something.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  /// Returns at `time` or later, using no core meanwhile.
  virtual void sleep_until(TimePoint time) = 0;
};

/// The machine's monotonic clock.
class RealClock : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  void sleep_until(TimePoint time) override;
};

/// A clock that stands still until it is advanced; sleeping advances it. Any thread may use it.
class ManualClock : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Duration(now_.load())); }
  void sleep_until(TimePoint time) override;
  void advance(Duration duration) { now_ += duration.count(); }

 private:
  std::atomic<Duration::rep> now_{0};
};

}  // namespace paceline
