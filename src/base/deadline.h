// Every wait takes a deadline.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace paceline {

/// A moment on the real clock after which a wait gives up.
class Deadline {
 public:
  static Deadline after(Duration duration) {
    return Deadline(std::chrono::steady_clock::now() + duration);
  }
  static Deadline at(TimePoint time) { return Deadline(time); }
  /// The moment at which `clock` shows `time`, if it runs like the real clock from now on; a year
  /// from now at the latest.
  static Deadline at(TimePoint time, const Clock& clock) {
    return after(std::min<Duration>(time - clock.now(), std::chrono::hours(24 * 365)));
  }
  /// Returns this deadline, which also passes once `descriptor` can be read. A link watches the
  /// descriptor while it waits or connects, but not while it looks up a name or connects to a Unix
  /// socket.
  Deadline or_when_readable(int descriptor) const {
    Deadline earlier = *this;
    earlier.descriptor_ = descriptor;
    return earlier;
  }

  TimePoint time() const { return time_; }
  bool passed() const { return std::chrono::steady_clock::now() >= time_; }
  int descriptor() const { return descriptor_; }  // -1 when there is none
  Duration left() const { return time_ - std::chrono::steady_clock::now(); }

 private:
  explicit Deadline(TimePoint time) : time_(time) {}
  TimePoint time_;
  int descriptor_ = -1;
};

}  // namespace paceline
