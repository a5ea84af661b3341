// Random orders that are functions of a key.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/philox.h"

namespace paceline {

/// Returns a number below `limit`, each about equally likely, for place `at` of a stream (key,
/// stream). `limit` is at least 1.
inline std::int64_t random_below(std::int64_t limit, std::uint64_t key, std::int64_t at,
                                 std::int64_t stream = 0) {
  const PhiloxBlock words = philox(key, std::uint64_t(at), std::uint64_t(stream));
  const std::uint64_t wide = (std::uint64_t{words[0]} << 32) | words[1];
  return std::int64_t(wide % std::uint64_t(limit));
}

/// Shuffles by Fisher and Yates' method in Durstenfeld's form (CACM 7, 1964).
inline void shuffle(std::vector<std::int64_t>& order, std::uint64_t key) {
  for (std::int64_t i = std::int64_t(order.size()) - 1; i > 0; --i) {
    std::swap(order[std::size_t(i)], order[std::size_t(random_below(i + 1, key, i))]);
  }
}

}  // namespace paceline
