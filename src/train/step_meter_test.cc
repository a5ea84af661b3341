#include "train/step_meter.h"

#include <gtest/gtest.h>

#include <map>

namespace paceline {
namespace {

using std::chrono::milliseconds;

class StepMeterTest : public ::testing::Test {
 protected:
  void spend(Activity activity, int ms) {
    AccountScope scope(account, activity);
    clock.advance(milliseconds(ms));
  }
  static double share(const TaskReport& report, std::string_view name) {
    for (const auto& [found, value] : report.share) {
      if (found == name) return value;
    }
    return -1;
  }

  ManualClock clock;
  StepAccount account{clock};
  StepMeter meter{account, "words"};
};

TEST_F(StepMeterTest, SharesOutTheTimedStepsOnly) {
  spend(Activity::kInput, 1000);
  meter.add_step(milliseconds(1000), Duration(0), 20);
  meter.start();
  spend(Activity::kInput, 10);
  spend(Activity::kCompute, 60);
  clock.advance(milliseconds(30));
  meter.add_step(milliseconds(100), Duration(0), 20);
  clock.advance(milliseconds(5000));  // after the last step
  const TaskReport report = meter.report("worker:1");
  EXPECT_EQ(report.task, "worker:1");
  EXPECT_EQ(report.steps, 2);
  EXPECT_DOUBLE_EQ(*report.seconds, 0.1);
  EXPECT_DOUBLE_EQ(*report.steps_per_s, 10);
  EXPECT_DOUBLE_EQ(*report.examples_per_s, 200);
  EXPECT_DOUBLE_EQ(share(report, "input"), 0.1);
  EXPECT_DOUBLE_EQ(share(report, "compute"), 0.6);
  EXPECT_DOUBLE_EQ(share(report, "other"), 0.3);
}

TEST_F(StepMeterTest, TellsWhatAllStepsTookTimedOrNot) {
  spend(Activity::kInput, 1000);
  clock.advance(milliseconds(30));
  meter.exclude(milliseconds(30));
  meter.start();
  spend(Activity::kCompute, 60);
  spend(Activity::kInput, 500);
  clock.advance(milliseconds(40));
  meter.exclude(milliseconds(35));
  std::map<std::string, double> spent;
  for (const auto& [activity, seconds] : meter.seconds_spent()) spent[activity] = seconds;
  EXPECT_EQ(spent.size(), std::size_t(kActivityCount));
  EXPECT_DOUBLE_EQ(spent.at("input"), 1.5);
  EXPECT_DOUBLE_EQ(spent.at("compute"), 0.06);
  EXPECT_NEAR(spent.at("other"), 0.005, 1e-12);
}

TEST_F(StepMeterTest, LeavesEvaluationsOut) {
  meter.start();
  spend(Activity::kCompute, 90);
  clock.advance(milliseconds(710));
  meter.exclude(milliseconds(700));
  meter.add_step(milliseconds(100), Duration(0), 20);
  const TaskReport report = meter.report("worker:0");
  EXPECT_DOUBLE_EQ(*report.seconds, 0.1);
  EXPECT_DOUBLE_EQ(share(report, "other"), 0.1);
}

TEST_F(StepMeterTest, CountsTransfersBeyondTheWaitAsHidden) {
  meter.start();
  spend(Activity::kCompute, 80);
  spend(Activity::kPull, 20);
  meter.add_step(milliseconds(100), milliseconds(50), 20);  // 30 ms were hidden
  spend(Activity::kPush, 40);
  meter.add_step(milliseconds(40), milliseconds(10), 20);  // nothing was hidden
  EXPECT_DOUBLE_EQ(*meter.report("worker:0").hidden_ms, 15);
}

TEST_F(StepMeterTest, MeasuresNothingWithoutTimedSteps) {
  meter.add_step(milliseconds(100), Duration(0), 20);
  const TaskReport report = meter.report("worker:0");
  EXPECT_EQ(report.steps, 1);
  EXPECT_FALSE(report.seconds.has_value());
  EXPECT_FALSE(report.steps_per_s.has_value());
  EXPECT_TRUE(report.share.empty());
}

TEST_F(StepMeterTest, CountsStepsAfterTheEndWithoutTimingThem) {
  meter.start();
  spend(Activity::kCompute, 100);
  meter.add_step(milliseconds(100), Duration(0), 20);
  meter.stop();
  spend(Activity::kCompute, 900);
  meter.add_step(milliseconds(900), Duration(0), 20);
  EXPECT_EQ(meter.report("worker:0").steps, 2);
  EXPECT_DOUBLE_EQ(*meter.report("worker:0").seconds, 0.1);
}

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
