// Tiles that a pool's threads claim one by one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/thread_pool.h"

namespace paceline {

/// Returns the most tiles that run at once.
inline std::size_t lanes_of(const ThreadPool& pool, std::size_t tiles) {
  return std::min(tiles, std::size_t(pool.threads()));
}

/// Calls call(lane, i) for each i < `tiles`. `lane` is below lanes_of(pool, tiles) and belongs to
/// one thread at a time, so each lane can have memory of its own.
template <typename Call>
void claim_tiles(ThreadPool& pool, std::size_t tiles, const Call& call) {
  std::atomic<std::size_t> next{0};
  auto run_lane = [&](std::int64_t lane) {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tiles;)
      call(std::size_t(lane), i);
  };
  pool.run_tiles(std::int64_t(lanes_of(pool, tiles)), TileFunction(run_lane));
}

}  // namespace paceline
