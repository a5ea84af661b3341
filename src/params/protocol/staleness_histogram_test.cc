#include "params/protocol/worker_task.h"

#include <gtest/gtest.h>

#include <limits>

namespace paceline {
namespace {

TEST(StalenessHistogram, ItIsEmptyAtFirst) {
  const Staleness none = StalenessHistogram().summary();
  EXPECT_EQ(none.contributions, 0);
  EXPECT_EQ(none.updates, 0);
}

TEST(StalenessHistogram, SmallNumbersAreExact) {
  StalenessHistogram histogram;
  for (std::int64_t updates = 1; updates <= 100; ++updates) histogram.add(updates);
  histogram.add(-1);
  const Staleness counted = histogram.summary();
  EXPECT_EQ(counted.contributions, 100);
  EXPECT_EQ(counted.updates, 5050);
  EXPECT_EQ(counted.p95, 95);
}

TEST(StalenessHistogram, LargeNumbersAreExactToAHundredth) {
  for (std::int64_t updates = 127; updates < (std::int64_t{1} << 30); updates += updates / 3) {
    StalenessHistogram histogram;
    histogram.add(updates);
    EXPECT_NEAR(double(histogram.summary().p95), double(updates), 0.01 * double(updates));
  }
}

TEST(StalenessHistogram, ANumberThatNoJobReachesIsCountedAsTheLargest) {
  StalenessHistogram histogram;
  histogram.add(std::numeric_limits<std::int64_t>::max());
  EXPECT_NEAR(double(histogram.summary().p95), 0x1p31, 0.01 * 0x1p31);
}

}  // namespace
}  // namespace paceline
