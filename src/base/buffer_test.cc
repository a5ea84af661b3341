#include "base/buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kBufferAlignment == 0; }

TEST(Buffer, IsZeroFilledAndAligned) {
  for (std::size_t bytes : {1, 63, 64, 65, 100000, 5'000'001}) {
    const Buffer buffer(bytes);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_TRUE(aligned(buffer.data()));
    EXPECT_TRUE(std::ranges::all_of(buffer.span(), [](std::byte b) { return b == std::byte(0); }));
  }
}

TEST(Buffer, LargeMemoryIsTakenWhenItIsFirstWritten) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers watch the heap, and large memory is there, too";
#endif
  const auto page = std::size_t(::sysconf(_SC_PAGESIZE));
  const std::size_t pages = (std::size_t{64} << 20) / page;
  const Buffer buffer(pages * page);
  std::vector<unsigned char> taken(pages);
  const auto count = [&] {
    EXPECT_EQ(::mincore(buffer.data(), buffer.size(), taken.data()), 0);
    return std::ranges::count(taken, 1);
  };
  EXPECT_EQ(count(), 0);
  std::ranges::fill(buffer.span(), std::byte(1));
  EXPECT_EQ(count(), std::ptrdiff_t(pages));
}

TEST(Buffer, MemoryThatIsNotThereIsAnErrorWithItsSize) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process instead";
#endif
  EXPECT_EQ(error_of(ErrorCode::kUnavailable, [] { Buffer(std::size_t{1} << 60); }),
            "not enough memory: 1,152,921,504,606,846,976 bytes were asked for at once");
}

TEST(Buffer, EmptyOnesAreFine) {
  EXPECT_EQ(Buffer().size(), 0U);
  EXPECT_TRUE(Buffer(0).span().empty());
}

TEST(Buffer, MovesItsMemory) {
  Buffer buffer(8);
  std::byte* memory = buffer.data();
  const Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), memory);
}

TEST(Buffer, GivesADevicesMemoryBackToItOnce) {
  std::byte memory[8] = {};
  int given_back = 0;
  {
    Buffer buffer(
        memory, sizeof(memory), [](void* owner, std::byte*) { ++*static_cast<int*>(owner); },
        &given_back);
    EXPECT_EQ(buffer.data(), memory);
    const Buffer moved = std::move(buffer);
    EXPECT_EQ(given_back, 0);
  }
  EXPECT_EQ(given_back, 1);
}

TEST(Buffer, SharedMemoryIsNeverNull) {
  EXPECT_NE(allocate_shared_aligned(0), nullptr);
  EXPECT_TRUE(aligned(allocate_shared_aligned(10).get()));
}

TEST(Buffer, RoundsUpToAMultiple) {
  EXPECT_EQ(round_up(0, 64), 0U);
  EXPECT_EQ(round_up(1, 64), 64U);
  EXPECT_EQ(round_up(64, 64), 64U);
  EXPECT_EQ(round_up(65, 64), 128U);
}

}  // namespace
}  // namespace paceline
