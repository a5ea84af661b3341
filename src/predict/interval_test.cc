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

TEST(IntervalTest, IsNarrowerWhereDevicesAreTheLimitThanWhereRulesAre) {
  const auto width = [](LimitKind limit) {
    return interval_of(limit).high - interval_of(limit).low;
  };
  EXPECT_LT(width(LimitKind::kDevices), width(LimitKind::kLink));
  EXPECT_LT(width(LimitKind::kLink), width(LimitKind::kRules));
}

}  // namespace
}  // namespace paceline
