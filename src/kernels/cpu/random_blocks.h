// Runs over the blocks of a random stream on a pool's threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/cpu/vector_random.h"
#include "kernels/random_stream.h"

namespace paceline {

/// Calls f(words, first, count) for runs of `count` elements from `first` on, which make up all `n`
/// elements. A run has up to 256 elements, and begins at a multiple of 4.
template <typename F>
void for_random_blocks(ThreadPool& pool, const RandomStream& stream, std::int64_t n, const F& f) {
  constexpr std::int64_t kGrain = 2048;  // in blocks; this takes some ten microseconds
  constexpr std::int64_t kRun = 64;
  static_assert(kRun % kRandomBlocksAtOnce == 0);
  pool.parallel_for((n + 3) / 4, kGrain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::array<std::uint32_t, std::size_t(kRun * 4)> words;
    for (std::int64_t block = begin; block < end; block += kRun) {
      const std::int64_t blocks = std::min(kRun, end - block);
      vector_random_words(stream, block, blocks, words.data());
      f(words.data(), block * 4, std::min(blocks * 4, n - block * 4));
    }
  });
}

}  // namespace paceline
