#include "kernels/cpu/vector_random.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/philox.h"
#include "kernels/testing/each_instruction_set.h"

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
  with_each_instruction_set([] {
    expect_the_words_of_single_blocks(RandomStream({1, 2, 3}, "a"), 0, 37);
    // Here the counter carries into its second word.
    expect_the_words_of_single_blocks(RandomStream({9, 1, 1}, "b"), 0xfffffffd, 16);
  });
}

TEST(VectorRandomTest, DropsWhereTheWordIsNotBelowKeep) {
  constexpr float kKeep = 0.35f, kFactor = 1 / kKeep;
  with_each_instruction_set([&] {
    for (const std::int64_t n : {0, 1, 15, 16, 259}) {
      std::vector<std::uint32_t> words;
      std::vector<float> x, expected;
      for (std::int64_t i = 0; i < n; ++i) {
        words.push_back(philox(7, std::uint64_t(i), 0)[0]);
        if (i % 5 == 0) words.back() = std::uint32_t(double(kKeep) * 0x1p32) - 256 + 64 * (i % 8);
        x.push_back(i % 7 == 0 ? std::numeric_limits<float>::infinity() : float(i) - 100);
        expected.push_back(to_unit_float(words.back()) < kKeep ? x.back() * kFactor : 0.0f);
      }
      std::vector<float> y(std::size_t(n), -1);
      vector_drop(words.data(), kKeep, kFactor, x.data(), y.data(), n);
      EXPECT_EQ(y, expected) << n;
    }
  });
}

}  // namespace
}  // namespace paceline
