#include "params/protocol/testing/virtual_link.h"

#include <algorithm>
#include <utility>

namespace paceline {

void VirtualLink::send(std::size_t bytes, Duration delay, std::function<void()> sent,
                       std::function<void()> arrived) {
  const Duration takes(std::int64_t(double(bytes) / bytes_per_s_ * 1e9));
  sent_ = std::max(sent_, time_.now()) + takes;
  arrives_ = std::max(arrives_, sent_ + delay);
  if (sent) time_.at(sent_, std::move(sent));
  if (arrived) time_.at(arrives_, std::move(arrived));
}

}  // namespace paceline
