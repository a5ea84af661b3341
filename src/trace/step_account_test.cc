#include "trace/step_account.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

using std::chrono::milliseconds;

TEST(StepAccount, EveryMomentCountsAsOneActivity) {
  ManualClock clock;
  StepAccount account(clock);
  account.reset();
  clock.advance(milliseconds(3));
  EXPECT_EQ(account.change_to(Activity::kCompute), Activity::kOther);
  clock.advance(milliseconds(5));
  EXPECT_EQ(account.change_to(Activity::kPull), Activity::kCompute);
  clock.advance(milliseconds(7));
  account.change_to(Activity::kOther);

  EXPECT_EQ(account.spent(Activity::kOther), milliseconds(3));
  EXPECT_EQ(account.spent(Activity::kCompute), milliseconds(5));
  EXPECT_EQ(account.spent(Activity::kPull), milliseconds(7));
  EXPECT_EQ(account.total(), milliseconds(15));
}

TEST(StepAccount, ScopesNestAndGoBackToWhatWas) {
  ManualClock clock;
  StepAccount account(clock);
  account.reset();
  {
    const AccountScope push(account, Activity::kPush);
    clock.advance(milliseconds(1));
    {
      const AccountScope apply(account, Activity::kApply);
      clock.advance(milliseconds(10));
    }
    clock.advance(milliseconds(2));
  }
  clock.advance(milliseconds(4));
  account.change_to(Activity::kOther);

  EXPECT_EQ(account.spent(Activity::kPush), milliseconds(3));
  EXPECT_EQ(account.spent(Activity::kApply), milliseconds(10));
  EXPECT_EQ(account.spent(Activity::kOther), milliseconds(4));
}

TEST(StepAccount, ResetForgetsAndBeginsNow) {
  ManualClock clock;
  StepAccount account(clock);
  clock.advance(milliseconds(9));
  account.reset();
  EXPECT_EQ(account.total(), Duration(0));
  clock.advance(milliseconds(1));
  account.change_to(Activity::kWait);
  EXPECT_EQ(account.spent(Activity::kOther), milliseconds(1));
  EXPECT_EQ(account.total(), milliseconds(1));
}

TEST(StepAccount, WaitsForTheDeviceAreComputeAndStandInTheTimeline) {
  ManualClock clock;
  StepAccount account(clock);
  account.reset();
  const auto wait = [&] {
    const DeviceWaitScope scope(account);
    clock.advance(milliseconds(3));
  };
  wait();
  Timeline timeline(0, 1);
  account.show_device_waits(timeline);
  timeline.begin_step(0);
  wait();
  EXPECT_EQ(account.spent(Activity::kCompute), milliseconds(6));
  ASSERT_EQ(timeline.events().size(), 1U);
  EXPECT_EQ(timeline.events()[0].label->category, "device");
}

TEST(StepAccount, ActivitiesHaveTheReportsNames) {
  EXPECT_EQ(name_of(Activity::kInput), "input");
  EXPECT_EQ(name_of(Activity::kApply), "apply");
  EXPECT_EQ(name_of(Activity::kOther), "other");
}

}  // namespace
}  // namespace paceline
