// The times of steps, in a histogram that is laid out once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace paceline {

/// Each bucket is half a per cent longer than the one before, from a microsecond to three hours.
/// Adding a time allocates nothing.
class StepTimes {
 public:
  void add(Duration step);
  std::int64_t count() const { return count_; }
  /// Returns the time that `share` of the steps did not exceed, to half a per cent; empty without
  /// steps.
  std::optional<double> quantile_ms(double share) const;

 private:
  static constexpr int kBuckets = 4608;
  std::array<std::int64_t, kBuckets> counts_{};
  std::int64_t count_ = 0;
};

}  // namespace paceline
