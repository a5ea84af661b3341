#include "params/shard/contribution_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/shard/shard_piece.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

std::vector<float> numbers(std::size_t size, float first) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = first + float(i % 13);
  return values;
}

// The length is not a multiple of a SIMD vector's.
TEST(ContributionMean, OfDenseOnesIsTheirWeightedSum) {
  constexpr std::size_t kSize = 5000, kFirst = 3;
  const std::vector<float> one = numbers(kSize, 1), other = numbers(kSize, -20);
  const MeanPart parts[] = {{.gradient = one.data(), .rows = {}, .weight = 0.25f},
                            {.gradient = other.data(), .rows = {}, .weight = 0.75f}};
  std::vector<float> mean(kSize - kFirst);
  DenseMean(parts).write(kFirst, mean);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    ASSERT_EQ(mean[i], 0.25f * one[kFirst + i] + 0.75f * other[kFirst + i]) << i;
  }
}

TEST(ContributionMean, OfRowsHasEachRowOnce) {
  const std::vector<float> one = {1, 2, 3, 4}, other = {10, 20, 30, 40}, none;
  const std::int32_t one_rows[] = {2, 7}, other_rows[] = {1, 7};
  const MeanPart parts[] = {
      {one.data(), one_rows, 0.5f}, {other.data(), other_rows, 0.25f}, {none.data(), {}, 0.25f}};
  RowMean mean;
  mean.rows = {99};
  write_row_mean(parts, 2, mean);
  EXPECT_THAT(mean.rows, ElementsAre(1, 2, 7));
  EXPECT_THAT(mean.values, ElementsAre(2.5f, 5, 0.5f, 1, 9, 12));
}

TEST(ContributionMean, SquaresAreThoseOfAllElements) {
  const float values[] = {3, -4, 0.5f};
  EXPECT_EQ(sum_of_squares(values), 25.25);
  EXPECT_EQ(sum_of_squares(std::vector<float>(1001, 2.0f)), 4004.0);
}

// The piece has several regions, and several threads apply the rule.
TEST(ContributionMean, APieceAppliesItOnItsWayAsIfItHadBeenMadeBefore) {
  const VariableSpec variable{.name = "w", .shape = {300, 500}, .rule = Adam{}};
  const Piece where{.rows = 300};
  const std::size_t size = 300 * 500;
  ApplyPool pool(3);
  std::vector<std::vector<float>> results;
  for (const bool on_its_way : {true, false}) {
    Buffer memory(size * sizeof(float));
    ShardPiece piece(variable, where, memory.span(), pool);
    const std::vector<float> one = numbers(size, 1), other = numbers(size, -20);
    const MeanPart parts[] = {{.gradient = one.data(), .rows = {}, .weight = 0.5f},
                              {.gradient = other.data(), .rows = {}, .weight = 0.5f}};
    const RuleStep step{.learning_rate = 0.1f, .count = piece.begin_contribution()};
    if (on_its_way) {
      piece.apply_mean(step, parts);
    } else {
      std::vector<float> mean(size);
      DenseMean(parts).write(0, mean);
      piece.apply(step, 0, std::as_bytes(std::span(mean)), {});
    }
    piece.end_contribution();
    std::vector<float> all(piece.all_bytes() / sizeof(float));
    piece.copy_all(std::as_writable_bytes(std::span(all)));
    results.push_back(all);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0][7], 0);
}

}  // namespace
}  // namespace paceline
