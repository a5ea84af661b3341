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

  TimePoint time() const { return time_; }
  bool passed() const { return std::chrono::steady_clock::now() >= time_; }
  Duration left() const { return time_ - std::chrono::steady_clock::now(); }

 private:
  explicit Deadline(TimePoint time) : time_(time) {}
  TimePoint time_;
};

}  // namespace paceline
