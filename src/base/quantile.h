// Quantiles of what was counted in buckets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

/// Returns the first bucket at which `share` of all `count` values have been counted (nearest
/// rank); the last bucket if there is no such bucket.
inline std::size_t bucket_of_quantile(std::span<const std::int64_t> counts, std::int64_t count,
                                      double share) {
  const auto rank = std::max<std::int64_t>(std::int64_t(std::ceil(share * double(count))), 1);
  std::int64_t seen = 0;
  std::size_t bucket = 0;
  while (bucket + 1 < counts.size() && (seen += counts[bucket]) < rank) ++bucket;
  return bucket;
}

}  // namespace paceline
