#include "params/protocol/staleness_histogram.h"

#include <algorithm>
#include <bit>

#include "base/quantile.h"

namespace paceline {

// The highest bits of a number say which bucket is its own.
std::size_t StalenessHistogram::bucket_of(std::int64_t updates) {
  const auto number = std::uint64_t(std::min(updates, (std::int64_t{1} << kLargestBits) - 1));
  const int shift = std::max(0, int(std::bit_width(number)) - kExactBits);
  return std::size_t(shift) * kHalf + std::size_t(number >> shift);
}

std::int64_t StalenessHistogram::middle_of(std::size_t bucket) {
  if (bucket < 2 * kHalf) return std::int64_t(bucket);
  const std::size_t shift = bucket / kHalf - 1;
  const auto lowest = std::int64_t((bucket - shift * kHalf) << shift);
  return lowest + ((std::int64_t{1} << shift) - 1) / 2;
}

void StalenessHistogram::add(std::int64_t updates) {
  if (updates < 0) return;
  ++counts_[bucket_of(updates)];
  ++contributions_;
  updates_ += updates;
}

Staleness StalenessHistogram::summary() const {
  if (contributions_ == 0) return {};
  return {.contributions = contributions_,
          .updates = updates_,
          .p95 = middle_of(bucket_of_quantile(counts_, contributions_, 0.95))};
}

}  // namespace paceline
