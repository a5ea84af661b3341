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

TEST(IntervalTest, IsWiderWhereKernelsWereDisturbedAndWideWhereNothingWasMeasured) {
  for (const LimitKind limit : {LimitKind::kKernels, LimitKind::kCores, LimitKind::kAlone}) {
    const SpeedInterval usual = interval_of(limit),
                        disturbed = interval_of(limit, KernelsFrom::kBesideOthers),
                        unknown = interval_of(limit, KernelsFrom::kCosts);
    EXPECT_LT(disturbed.low, usual.low) << name_of(limit);
    EXPECT_GT(disturbed.high, usual.high) << name_of(limit);
    EXPECT_LT(unknown.low, 0.07) << name_of(limit);
    EXPECT_GT(unknown.high, disturbed.high) << name_of(limit);
  }
  const SpeedInterval link = interval_of(LimitKind::kLink, KernelsFrom::kCosts);
  EXPECT_EQ(link.high, interval_of(LimitKind::kLink).high);
  EXPECT_LT(link.low, 0.07) << "kernels that are slower may be the limit instead";
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
