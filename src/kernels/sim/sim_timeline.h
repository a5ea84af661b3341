// The time for which a simulated device is busy: kernels queue on it as they do on an accelerator.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "kernels/event.h"

namespace paceline {

/// One thread queues work; any thread may wait for an event. `clock` must outlive it.
class SimTimeline : private Event::Source {
 public:
  explicit SimTimeline(Clock& clock) : clock_(clock), busy_until_(clock.now()) {}

  /// Queues work of this length behind what is queued.
  void run(Duration duration);
  /// Returns when all queued work is done.
  void synchronize();
  /// Happens when all work that is queued now is done.
  Event record();
  /// True when the event is of this timeline.
  bool recorded(const Event& event) const { return event.source() == this; }

 private:
  void synchronize(std::uint64_t ticket) override;
  void wait_until(TimePoint time);

  Clock& clock_;
  std::mutex mutex_;  // of what follows
  TimePoint busy_until_;
  Duration late_{0};  // so long ago the host would be here, had no wait ended late
};

}  // namespace paceline
