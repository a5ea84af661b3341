#include "train/step_times.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(StepTimes, GivesQuantilesToHalfAPerCent) {
  StepTimes times;
  for (int i = 1; i <= 1000; ++i) times.add(milliseconds(i));
  EXPECT_EQ(times.count(), 1000);
  EXPECT_NEAR(*times.quantile_ms(0.5), 500, 500 * 0.006);
  EXPECT_NEAR(*times.quantile_ms(0.99), 990, 990 * 0.006);
}

TEST(StepTimes, HasNoQuantileWithoutSteps) {
  EXPECT_FALSE(StepTimes().quantile_ms(0.5).has_value());
}

TEST(StepTimes, TakesAnyDuration) {
  StepTimes times;
  times.add(Duration(0));
  times.add(std::chrono::hours(100));
  EXPECT_LT(*times.quantile_ms(0.5), 0.002);
  EXPECT_GT(*times.quantile_ms(0.99), 3.6e6);
}

}  // namespace
}  // namespace paceline
