// The time for which a simulated device is busy: kernels queue on it as on an accelerator.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "kernels/device.h"

namespace paceline {

/// One thread queues work; any thread may wait for an event. `clock` must outlive the timeline.
class SimTimeline : public QueueClock, private Event::Source {
 public:
  explicit SimTimeline(Clock& clock) : clock_(clock), busy_until_(clock.now()) {}

  /// Queues work of this length behind the queued work.
  void run(Duration duration);
  /// Returns when all queued work is done.
  void synchronize();
  /// Returns an event that happens when all currently queued work is done.
  Event record();
  /// The mark is the time itself, in nanoseconds, which is known at once.
  std::int64_t mark() override;
  std::optional<TimePoint> take(std::int64_t mark) override { return TimePoint(Duration(mark)); }
  /// True if the event belongs to this timeline.
  bool recorded(const Event& event) const { return event.source() == this; }

 private:
  void synchronize(std::uint64_t ticket) override;
  void wait_until(TimePoint time);

  Clock& clock_;
  std::mutex mutex_;  // guards the members below
  TimePoint busy_until_;
  TimePoint last_mark_{};
  Duration late_{0};  // how much earlier the host would be here if no wait had ended late
};

}  // namespace paceline
