#include "predict/interval.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(IntervalTest, HoldsWhatIsPredictedWhateverTheLimit) {
  for (int kind = 0; kind <= int(LimitKind::kInput); ++kind) {
    const SpeedInterval interval = interval_of(LimitKind(kind));
    EXPECT_LT(interval.low, 1) << name_of(LimitKind(kind));
    EXPECT_GT(interval.high, 1) << name_of(LimitKind(kind));
  }
}

TEST(IntervalTest, IsWideWhereKernelsAreEstimatedAndTheLimit) {
  for (const LimitKind limit : {LimitKind::kKernels, LimitKind::kCores, LimitKind::kAlone}) {
    EXPECT_LT(interval_of(limit, true).low, interval_of(limit).low) << name_of(limit);
    EXPECT_GT(interval_of(limit, true).high, interval_of(limit).high) << name_of(limit);
  }
  EXPECT_EQ(interval_of(LimitKind::kLink, true).high, interval_of(LimitKind::kLink).high);
}

TEST(IntervalTest, IsNarrowerWhereDevicesAreTheLimitThanWhereRulesAre) {
  const auto width = [](LimitKind limit) {
    return interval_of(limit).high - interval_of(limit).low;
  };
  EXPECT_LT(width(LimitKind::kDevices), width(LimitKind::kLink));
  EXPECT_LT(width(LimitKind::kLink), width(LimitKind::kRules));
}

}  // namespace
}  // namespace paceline
