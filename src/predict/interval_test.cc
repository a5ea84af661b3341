#include "predict/prediction.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(IntervalTest, HoldsWhatIsPredictedWhateverTheLimit) {
  for (const LimitName& each : kLimits) {
    if (!each.predicted) continue;
    const SpeedInterval interval = interval_of(each.limit);
    EXPECT_LT(interval.low, 1) << each.name;
    EXPECT_GT(interval.high, 1) << each.name;
  }
}

TEST(IntervalTest, IsWiderWhereKernelsWereDisturbedAndWideWhereNothingWasMeasured) {
  for (const Limit limit : {Limit::kKernels, Limit::kCores, Limit::kAlone}) {
    const SpeedInterval usual = interval_of(limit),
                        disturbed = interval_of(limit, KernelsFrom::kBesideOthers),
                        unknown = interval_of(limit, KernelsFrom::kCosts);
    EXPECT_LT(disturbed.low, usual.low) << name_of(limit);
    EXPECT_GT(disturbed.high, usual.high) << name_of(limit);
    EXPECT_LT(unknown.low, 0.07) << name_of(limit);
    EXPECT_GT(unknown.high, disturbed.high) << name_of(limit);
  }
  const SpeedInterval device = interval_of(Limit::kDevices, KernelsFrom::kCosts);
  EXPECT_LT(device.low, 0.07) << "kernels of a device that no run has verified";
  EXPECT_GT(device.high, 1.5);
  const SpeedInterval link = interval_of(Limit::kLink, KernelsFrom::kCosts);
  EXPECT_EQ(link.high, interval_of(Limit::kLink).high);
  EXPECT_LT(link.low, 0.07) << "kernels that are slower may be the limit instead";
}

TEST(IntervalTest, IsNarrowerWhereDevicesAreTheLimitThanWhereRulesAre) {
  const auto width = [](Limit limit) { return interval_of(limit).high - interval_of(limit).low; };
  EXPECT_LT(width(Limit::kDevices), width(Limit::kLink));
  EXPECT_LT(width(Limit::kLink), width(Limit::kRules));
}

}  // namespace
}  // namespace paceline
