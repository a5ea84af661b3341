#include "kernels/sim/sim_timeline.h"

#include <algorithm>

namespace paceline {

namespace {
// A sleep costs some 50 µs; shorter work is gathered until one is worth it.
constexpr Duration kWorthSleeping = std::chrono::milliseconds(1);
}  // namespace

// A sleep ends late. An accelerator would have been given its next work in time, so the work that
// follows a sleep begins as much earlier: a step takes its time exactly, on average.
void SimTimeline::run(Duration duration) {
  const TimePoint now = clock_.now();
  busy_until_ = std::max(busy_until_, now - overslept_) + duration;
  if (busy_until_ - now > kWorthSleeping) wait_until(busy_until_);
}

void SimTimeline::synchronize() {
  if (busy_until_ > clock_.now()) wait_until(busy_until_);
}

Event SimTimeline::record() {
  if (busy_until_ <= clock_.now()) return {};
  return {*this, std::uint64_t(busy_until_.time_since_epoch().count())};
}

void SimTimeline::synchronize(std::uint64_t ticket) {
  const TimePoint time{Duration(std::int64_t(ticket))};
  if (time > clock_.now()) wait_until(time);
}

void SimTimeline::wait_until(TimePoint time) {
  clock_.sleep_until(time);
  overslept_ = std::max(Duration(0), clock_.now() - time);
}

}  // namespace paceline
