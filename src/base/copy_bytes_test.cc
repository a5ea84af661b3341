#include "base/copy_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace paceline {
namespace {

std::vector<std::uint8_t> pattern(std::size_t bytes) {
  std::vector<std::uint8_t> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = std::uint8_t(1 + i * 31 % 251);
  return values;
}

using Copy = std::function<void(void* to, const void* from, std::size_t bytes)>;

// Copies lengths around one piece, and around the length from which copy_bytes copies whole again,
// from and to several places in a cache line.
void expect_that_it_copies_all_and_nothing_else(const Copy& copy) {
  constexpr std::size_t kGuard = 64;
  const std::size_t piece = 2048, mebibyte = 1 << 20;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{47}, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 5,
        mebibyte - 1, mebibyte, mebibyte + 1, 2 * mebibyte + 3}) {
    for (const std::size_t from : {0, 1, 48}) {
      for (const std::size_t to : {0, 16, 63}) {
        const std::vector<std::uint8_t> source = pattern(bytes + kGuard);
        std::vector<std::uint8_t> target(bytes + 2 * kGuard, 0);
        copy(target.data() + to, source.data() + from, bytes);
        std::vector<std::uint8_t> wanted(target.size(), 0);
        for (std::size_t i = 0; i < bytes; ++i) wanted[to + i] = source[from + i];
        ASSERT_TRUE(target == wanted) << bytes << " from " << from << " to " << to;
      }
    }
  }
}

TEST(CopyBytes, CopiesAllAndNothingElse) { expect_that_it_copies_all_and_nothing_else(copy_bytes); }

// Tests pieces even on a processor on which copy_bytes takes none.
TEST(CopyBytes, InPiecesCopiesAllAndNothingElse) {
  expect_that_it_copies_all_and_nothing_else(
      [](void* to, const void* from, std::size_t bytes) { copy_in_pieces(to, from, bytes, 2048); });
}

TEST(CopyBytes, OfNothingMayComeFromNowhere) {
  copy_bytes(nullptr, nullptr, 0);
  std::uint8_t untouched = 7;
  copy_bytes(&untouched, nullptr, 0);
  EXPECT_EQ(untouched, 7);
}

}  // namespace
}  // namespace paceline
