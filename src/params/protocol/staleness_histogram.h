// How stale the contributions of one worker were, counted in memory that is laid out once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "paceline/strategy.h"

namespace paceline {

/// Numbers below 128 are counted exactly, larger ones in buckets of which 64 double the number (as
/// HdrHistogram has them). Adding allocates nothing.
class StalenessHistogram {
 public:
  /// A negative number stands for a contribution that was not applied, and is not counted.
  void add(std::int64_t updates);
  Staleness summary() const;

 private:
  static constexpr int kExactBits = 7, kLargestBits = 31;
  static constexpr std::size_t kHalf = std::size_t{1} << (kExactBits - 1);
  static constexpr std::size_t kBuckets = kHalf * (kLargestBits - kExactBits + 2);
  static std::size_t bucket_of(std::int64_t updates);
  static std::int64_t middle_of(std::size_t bucket);

  std::array<std::int64_t, kBuckets> counts_{};
  std::int64_t contributions_ = 0, updates_ = 0;
};

}  // namespace paceline
