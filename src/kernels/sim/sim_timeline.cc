#include "kernels/sim/sim_timeline.h"

#include <algorithm>

namespace paceline {

// A sleep ends late, but an accelerator would have got its next work in time. So the work that
// follows a wait begins earlier by the delay of the sleep, and on average a step takes exactly its
// time. Nothing else that the host does or waits for in between is hidden.
void SimTimeline::run(Duration duration) {
  const std::lock_guard lock(mutex_);
  busy_until_ = std::max(busy_until_, clock_.now() - late_) + duration;
}

void SimTimeline::synchronize() {
  TimePoint end;
  {
    const std::lock_guard lock(mutex_);
    end = busy_until_;
  }
  wait_until(end);
}

std::int64_t SimTimeline::mark() {
  const std::lock_guard lock(mutex_);
  // `late_` may have grown since the last mark, but marks never go back.
  last_mark_ = std::max({last_mark_, busy_until_, clock_.now() - late_});
  return last_mark_.time_since_epoch().count();
}

Event SimTimeline::record() {
  const std::lock_guard lock(mutex_);
  if (busy_until_ <= clock_.now() - late_) return {};
  return {*this, std::uint64_t(busy_until_.time_since_epoch().count())};
}

void SimTimeline::synchronize(std::uint64_t ticket) {
  wait_until(TimePoint(Duration(std::int64_t(ticket))));
}

void SimTimeline::wait_until(TimePoint time) {
  const bool slept = time > clock_.now();
  if (slept) clock_.sleep_until(time);
  const std::lock_guard lock(mutex_);
  const Duration since = clock_.now() - time;
  late_ = slept ? since : std::min(late_, since);
}

}  // namespace paceline
