#include "base/quantile.h"

#include <gtest/gtest.h>

#include <array>

namespace paceline {
namespace {

TEST(Quantile, TheBucketOfTheNearestRankIsFound) {
  constexpr std::array<std::int64_t, 4> kCounts = {5, 0, 4, 1};
  EXPECT_EQ(bucket_of_quantile(kCounts, 10, 0), 0u);
  EXPECT_EQ(bucket_of_quantile(kCounts, 10, 0.5), 0u);
  EXPECT_EQ(bucket_of_quantile(kCounts, 10, 0.51), 2u);
  EXPECT_EQ(bucket_of_quantile(kCounts, 10, 0.9), 2u);
  EXPECT_EQ(bucket_of_quantile(kCounts, 10, 0.95), 3u);
}

TEST(Quantile, WithoutCountsItIsTheLastBucket) {
  constexpr std::array<std::int64_t, 3> kNone = {};
  EXPECT_EQ(bucket_of_quantile(kNone, 0, 0.5), 2u);
}

}  // namespace
}  // namespace paceline
