// The callers that a link has refused, told to its user.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"

namespace paceline {

/// Tells of the first few, and then of at most one a second: callers who are refused may come by
/// thousands. Thread-safe.
class Refusals {
 public:
  /// `tell` may be empty.
  explicit Refusals(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
  void add(const std::string& caller, const std::string& why);

 private:
  const std::function<void(const std::string&)> tell_;
  std::mutex mutex_;
  TimePoint full_;  // when as many may be told at once as at the beginning
  std::int64_t untold_ = 0;
};

}  // namespace paceline
