// The age of the values that workers of a cluster compute with.
#pragma once

#include <cstdint>

namespace paceline {

/// The staleness of a worker's contributions: how many updates of other workers were made between
/// the read of the values that one was computed from and its own update (Ho et al., NIPS 2013).
struct Staleness {
  std::int64_t contributions = 0;  ///< for which it was counted
  std::int64_t updates = 0;        ///< the sum over them
  std::int64_t p95 = 0;            ///< 95% of them had no more; above 127 it is exact to 1%
  /// The contributions that arrived after their round was closed, and were dropped (`--late drop`).
  std::int64_t dropped = 0;
  /// The updates of a contribution on average; 0 when there is none.
  double mean() const { return contributions == 0 ? 0 : double(updates) / double(contributions); }
};

}  // namespace paceline
