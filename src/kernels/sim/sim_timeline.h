// How long a simulated device is busy: kernels queue on it as they do on an accelerator.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "kernels/event.h"

namespace paceline {

/// Used by one thread at a time. `clock` must outlive it.
class SimTimeline : private Event::Source {
 public:
  explicit SimTimeline(Clock& clock) : clock_(clock), busy_until_(clock.now()) {}

  /// Queues work of this length behind what is queued, and waits for it when more than a
  /// millisecond is queued.
  void run(Duration duration);
  /// Returns when all queued work is done.
  void synchronize();
  /// Happens when all work that is queued now is done.
  Event record();

 private:
  void synchronize(std::uint64_t ticket) override;
  void wait_until(TimePoint time);

  Clock& clock_;
  TimePoint busy_until_;
  Duration overslept_{0};
};

}  // namespace paceline
