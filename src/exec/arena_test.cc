#include "exec/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace paceline
