#include "params/protocol/testing/virtual_time.h"

#include <algorithm>
#include <utility>

namespace paceline {

double VirtualTime::seconds() const {
  return std::chrono::duration<double>(now_.time_since_epoch()).count();
}

void VirtualTime::at(TimePoint time, std::function<void()> act) {
  events_to_come_.push({std::max(time, now_), ++number_, std::move(act)});
}

bool VirtualTime::run_one() {
  if (events_to_come_.empty()) return false;
  const Event event = events_to_come_.top();
  events_to_come_.pop();
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

void VirtualLink::send(std::size_t bytes, Duration delay, std::function<void()> sent,
                       std::function<void()> arrived) {
  const Duration takes(std::int64_t(double(bytes) / bytes_per_s_ * 1e9));
  sent_ = std::max(sent_, time_.now()) + takes;
  arrives_ = std::max(arrives_, sent_ + delay);
  if (sent) time_.at(sent_, std::move(sent));
  if (arrived) time_.at(arrives_, std::move(arrived));
}

}  // namespace paceline
