// How long a simulated device is busy: kernels queue on it as they do on an accelerator.
#pragma once

#include "base/clock.h"

namespace paceline {

/// Used by one thread at a time. `clock` must outlive it.
class SimTimeline {
 public:
  explicit SimTimeline(Clock& clock) : clock_(clock), busy_until_(clock.now()) {}

  /// Queues work of this length behind what is queued, and waits for it when more than a
  /// millisecond is queued.
  void run(Duration duration);
  /// Returns when all queued work is done.
  void synchronize();

 private:
  void wait();

  Clock& clock_;
  TimePoint busy_until_;
  Duration overslept_{0};
};

}  // namespace paceline
