#include "base/virtual_time.h"

#include <algorithm>
#include <utility>

namespace paceline {

double VirtualTime::seconds() const {
  return std::chrono::duration<double>(now_.time_since_epoch()).count();
}

void VirtualTime::at(TimePoint time, std::function<void()> act) {
  events_to_come_.push_back({std::max(time, now_), ++number_, std::move(act)});
  std::push_heap(events_to_come_.begin(), events_to_come_.end());
}

bool VirtualTime::run_one() {
  if (events_to_come_.empty()) return false;
  std::pop_heap(events_to_come_.begin(), events_to_come_.end());
  const Event event = std::move(events_to_come_.back());
  events_to_come_.pop_back();
  now_ = event.at;
  ++events_;
  mix(std::uint64_t(now_.time_since_epoch().count()));
  event.act();
  return true;
}

Duration VirtualTime::between(Duration least, Duration most) {
  return least + Duration(std::int64_t(uniform() * double((most - least).count())));
}

void VirtualTime::mix(std::uint64_t number) {
  hash_ = (hash_ ^ number) * 0x100000001b3u + 0x9e3779b97f4a7c15u;
}

}  // namespace paceline
