#include "kernels/cpu/vector_random.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/instruction_set.h"

namespace paceline {
namespace {

void expect_the_words_of_single_blocks(const RandomStream& stream, std::int64_t first,
                                       std::int64_t blocks) {
  std::vector<std::uint32_t> words(std::size_t(blocks + kRandomBlocksAtOnce) * 4);
  vector_random_words(stream, first, blocks, words.data());
  for (std::int64_t i = 0; i < blocks; ++i) {
    const PhiloxBlock block = stream.block(first + i);
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(words[std::size_t(4 * i) + k], block[k]) << i;
  }
}

TEST(VectorRandomTest, ManyBlocksAreTheSingleOnes) {
  const std::vector<std::string_view> sets = instruction_sets();
  for (const std::string_view set : sets) {
    SCOPED_TRACE(set);
    ASSERT_TRUE(limit_instruction_set(set));
    expect_the_words_of_single_blocks(RandomStream({1, 2, 3}, "a"), 0, 37);
    // Where the counter carries into its second word.
    expect_the_words_of_single_blocks(RandomStream({9, 1, 1}, "b"), 0xfffffffd, 16);
  }
  ASSERT_TRUE(limit_instruction_set(sets.front()));
}

}  // namespace
}  // namespace paceline
