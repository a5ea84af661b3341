// Runs over the blocks of a random stream on the threads of a pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/random_stream.h"

namespace paceline {

/// Calls f(words, first element, elements in the block: 1 to 4) for all of n elements.
template <typename F>
void for_random_blocks(ThreadPool& pool, const RandomStream& stream, std::int64_t n, const F& f) {
  constexpr std::int64_t kGrain = 512;  // blocks, some ten microseconds
  pool.parallel_for((n + 3) / 4, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      f(stream.block(block), block * 4, std::min<std::int64_t>(4, n - block * 4));
    }
  });
}

}  // namespace paceline
