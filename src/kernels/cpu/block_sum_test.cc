#include "kernels/cpu/block_sum.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(BlockSum, CutsEachInputIntoBlocksOfItsOwn) {
  constexpr std::int64_t kElements[] = {40000, 0, 5, 65536, 0};
  BlockSum sum;
  for (const std::int64_t elements : kElements) sum.add_input(elements);
  ThreadPool pool(2);
  std::vector<std::byte> scratch(sum.scratch_bytes());
  EXPECT_EQ(sum.scratch_bytes(), 5 * sizeof(double));
  for (std::size_t input = 0; input < std::size(kElements); ++input) {
    const double elements = sum.run(pool, scratch, [&](const BlockSum::Block& block) {
      EXPECT_LE(block.begin + block.size, kElements[block.input]);
      return block.input == input ? double(block.size) : 0.0;
    });
    EXPECT_EQ(elements, double(kElements[input]));
  }
}

TEST(BlockSum, OfMoreThanAnyMemoryHoldsTakesNone) {
  BlockSum sum;
  sum.add_input(INT64_MAX / 2);
  EXPECT_GE(sum.scratch_bytes(), std::size_t{1} << 50);
}

}  // namespace
}  // namespace paceline
