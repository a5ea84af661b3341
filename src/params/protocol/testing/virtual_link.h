// For tests: a connection on which frames take time.
#pragma once

#include <cstddef>
#include <functional>

#include "base/virtual_time.h"

namespace paceline {

/// One direction of a connection, first in, first out. A frame leaves after the frames before it,
/// in a time that follows from its bytes and the link's rate. It arrives some delay later, never
/// before an earlier frame.
class VirtualLink {
 public:
  VirtualLink(VirtualTime& time, double bytes_per_s) : time_(time), bytes_per_s_(bytes_per_s) {}
  /// Calls `sent` when the frame's last byte has left, and `arrived` when this byte has arrived.
  /// Both may be empty.
  void send(std::size_t bytes, Duration delay, std::function<void()> sent,
            std::function<void()> arrived);
  /// Returns the time at which the last frame arrives.
  TimePoint last_arrival() const { return arrives_; }

 private:
  VirtualTime& time_;
  double bytes_per_s_;
  TimePoint sent_{}, arrives_{};
};

}  // namespace paceline
