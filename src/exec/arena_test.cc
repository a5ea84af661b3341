#include "exec/value_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/philox.h"

namespace paceline {
namespace {

TEST(Arena, BuffersThatNeverMeetShareMemory) {
  const ArenaBuffer buffers[] = {{1000, 0, 1}, {500, 2, 3}, {1000, 4, 9}};
  const ArenaLayout layout = lay_out_arena(buffers);
  EXPECT_EQ(layout.bytes, 1024u);
  EXPECT_EQ(layout.offsets, (std::vector<std::size_t>{0, 0, 0}));
}

TEST(Arena, ABufferIsStillAliveWhereItIsReadLast) {
  const ArenaBuffer buffers[] = {{64, 0, 1}, {64, 1, 2}};
  EXPECT_EQ(lay_out_arena(buffers).bytes, 128u);
}

TEST(Arena, SmallBuffersFillGaps) {
  const ArenaBuffer buffers[] = {{640, 0, 9}, {320, 0, 4}, {64, 5, 9}, {128, 0, 9}};
  EXPECT_EQ(lay_out_arena(buffers).bytes, 640u + 320 + 128);
}

TEST(Arena, EmptyBuffersHaveAnAddressOfTheirOwn) {
  const ArenaBuffer buffers[] = {{0, 0, 1}, {0, 0, 1}};
  const ArenaLayout layout = lay_out_arena(buffers);
  EXPECT_NE(layout.offsets[0], layout.offsets[1]);
}

TEST(Arena, NoTwoLiveBuffersOverlap) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<ArenaBuffer> buffers;
    for (std::uint64_t i = 0; i < 60; ++i) {
      const PhiloxBlock random = philox(seed, i, 0);
      const int first = int(random[1] % 50);
      buffers.push_back({random[0] % 5000, first, first + int(random[2] % 10)});
    }
    const ArenaLayout layout = lay_out_arena(buffers);
    for (std::size_t a = 0; a < buffers.size(); ++a) {
      EXPECT_EQ(layout.offsets[a] % kBufferAlignment, 0u);
      EXPECT_LE(layout.offsets[a] + buffers[a].bytes, layout.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        if (buffers[a].first > buffers[b].last || buffers[b].first > buffers[a].last) continue;
        const bool apart = layout.offsets[a] + buffers[a].bytes <= layout.offsets[b] ||
                           layout.offsets[b] + buffers[b].bytes <= layout.offsets[a];
        EXPECT_TRUE(apart) << a << " and " << b << ", seed " << seed;
      }
    }
  }
}

/// Returns the lowest offset at which buffer `i` meets no buffer that was placed before it.
std::size_t lowest_offset(std::span<const ArenaBuffer> buffers, const ArenaLayout& layout,
                          std::span<const std::size_t> placed, std::size_t i) {
  const auto meets = [&](std::size_t offset, std::size_t p) {
    const bool alive = buffers[i].first <= buffers[p].last && buffers[p].first <= buffers[i].last;
    return alive && offset < layout.offsets[p] + round_up(buffers[p].bytes, kBufferAlignment) &&
           layout.offsets[p] < offset + round_up(buffers[i].bytes, kBufferAlignment);
  };
  std::size_t offset = 0;
  while (std::ranges::any_of(placed, [&](std::size_t p) { return meets(offset, p); })) {
    offset += kBufferAlignment;
  }
  return offset;
}

TEST(Arena, EachBufferIsAsLowAsLargerOnesLet) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<ArenaBuffer> buffers;
    for (std::uint64_t i = 0; i < 80; ++i) {
      const PhiloxBlock random = philox(seed, i, 0);
      const int first = int(random[1] % 40) - 1;
      buffers.push_back({1 + random[0] % 2000, first, first + int(random[2] % 20)});
    }
    const ArenaLayout layout = lay_out_arena(buffers);
    std::vector<std::size_t> order(buffers.size()), placed;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
      return round_up(buffers[i].bytes, kBufferAlignment);
    });
    for (const std::size_t i : order) {
      EXPECT_EQ(layout.offsets[i], lowest_offset(buffers, layout, placed, i)) << "seed " << seed;
      placed.push_back(i);
    }
  }
}

/// Returns the number of searches that the layout of a chain of layers takes. A value lives until
/// the gradient of its layer is computed; a gradient lives until the next one is.
std::int64_t looks_of_chain(int layers) {
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < layers; ++i) {
    buffers.push_back({64, i, 2 * layers - i});
    buffers.push_back({64, 2 * layers - i, 2 * layers - i + 1});
  }
  return lay_out_arena(buffers).looks;
}

TEST(Arena, TwiceTheBuffersAreLittleMoreThanTwiceTheWork) {
  const std::int64_t some = looks_of_chain(512), four_times = looks_of_chain(2048);
  EXPECT_GT(some, 1024);
  EXPECT_LT(four_times, 6 * some);
}

}  // namespace
}  // namespace paceline
