// Every wait takes a deadline.
#pragma once

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
  /// The same; who makes a connection gives up also once `descriptor` can be read (not while it
  /// looks up a name, or dials a task of this host).
  Deadline or_when_readable(int descriptor) const {
    Deadline earlier = *this;
    earlier.descriptor_ = descriptor;
    return earlier;
  }

  TimePoint time() const { return time_; }
  bool passed() const { return std::chrono::steady_clock::now() >= time_; }
  int descriptor() const { return descriptor_; }  // -1: none
  Duration left() const { return time_ - std::chrono::steady_clock::now(); }

 private:
  explicit Deadline(TimePoint time) : time_(time) {}
  TimePoint time_;
  int descriptor_ = -1;
};

}  // namespace paceline
