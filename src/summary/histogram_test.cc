#include "summary/event.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace paceline {
namespace {

TEST(Histogram, CountsWhatLiesInEachBucket) {
  std::vector<float> values(3001);
  std::iota(values.begin(), values.end(), 0.0F);
  const Histogram histogram = Histogram::of(values);
  EXPECT_EQ(histogram.min, 0);
  EXPECT_EQ(histogram.max, 3000);
  EXPECT_EQ(histogram.count, 3001);
  EXPECT_EQ(histogram.sum, 3000.0 * 3001 / 2);
  ASSERT_EQ(histogram.counts.size(), std::size_t(Histogram::kBuckets));
  EXPECT_EQ(histogram.limits.front(), 100);
  EXPECT_EQ(histogram.limits.back(), 3000);
  EXPECT_EQ(histogram.counts.front(), 100);
  EXPECT_EQ(histogram.counts.back(), 101);  // the greatest is in the last
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0), 3001);
}

TEST(Histogram, HasOneBucketForOneValue) {
  const std::vector<float> values = {2, 2};
  const Histogram histogram = Histogram::of(values);
  EXPECT_EQ(histogram.limits, std::vector<double>{2});
  EXPECT_EQ(histogram.counts, std::vector<double>{2});
  EXPECT_EQ(histogram.sum_squares, 8);
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> some = {kNan, 1, kInfinity, 3, -kInfinity};
  EXPECT_EQ(Histogram::of(some).count, 2);
  EXPECT_EQ(Histogram::of(some).min, 1);
  const std::vector<float> none = {kNan};
  EXPECT_EQ(Histogram::of(none), Histogram());
  EXPECT_EQ(Histogram::of({}), Histogram());
}

TEST(Histogram, TakesTheWholeRangeOfFloat) {
  const std::vector<float> values = {std::numeric_limits<float>::lowest(), 0,
                                     std::numeric_limits<float>::max()};
  EXPECT_EQ(Histogram::of(values).counts.front(), 1);
  EXPECT_EQ(Histogram::of(values).counts.back(), 1);
}

}  // namespace
}  // namespace paceline
