#include "train/train_limit.h"

#include <gtest/gtest.h>

#include "params/local/local_control.h"

namespace paceline {
namespace {

using std::chrono::milliseconds;

class FakeControl : public LocalControl {
 public:
  bool all_warm() const override { return warm; }
  void set_done() override { done = true; }
  bool all_done() const override { return done && others_done; }
  bool any_done() const override { return some_done; }
  bool was_initialised() const override { return begun; }
  bool warm = false, done = false, others_done = false, some_done = false, begun = false;
};

class TrainLimitTest : public ::testing::Test {
 protected:
  /// Makes steps of 100 ms until the limit ends them, `most` at most. Returns their number.
  int steps(TrainLimit& limit, int most) {
    int made = 0;
    while (made < most && limit.go_on(global_step_)) {
      clock.advance(milliseconds(100));
      meter.add_step(milliseconds(100), Duration(0), 1);
      ++global_step_;
      ++made;
    }
    return made;
  }

  ManualClock clock;
  StepAccount account{clock};
  StepMeter meter{account, "examples"};
  FakeControl control;
  LocalControl alone;
  RunOptions run;
  std::int64_t global_step_ = 0;
};

TEST_F(TrainLimitTest, MakesExactlyTheStepsAskedFor) {
  run.steps = 25;
  TrainLimit limit(run, meter, alone);
  EXPECT_EQ(steps(limit, 1000), 25);
  EXPECT_DOUBLE_EQ(*meter.report("worker:0").seconds, 1.5);  // without the first ten
}

TEST_F(TrainLimitTest, MakesNoStepOnceSomeWorkerHasEndedTheTraining) {
  run.steps = 25;
  run.seconds = 2;
  TrainLimit limit(run, meter, alone);
  EXPECT_EQ(steps(limit, 3), 3);
  alone.end_training();
  EXPECT_EQ(steps(limit, 1000), 0);
}

TEST_F(TrainLimitTest, IsAbsolute) {
  run.steps = 25;
  global_step_ = 25;
  TrainLimit limit(run, meter, alone);
  EXPECT_EQ(steps(limit, 1000), 0);
}

TEST_F(TrainLimitTest, TimesSecondsAfterTheUntimedSteps) {
  run.seconds = 2;
  TrainLimit limit(run, meter, alone);
  EXPECT_EQ(steps(limit, 1000), 10 + 20);
  EXPECT_DOUBLE_EQ(*meter.report("worker:0").seconds, 2);
}

TEST_F(TrainLimitTest, WaitsUntilEveryWorkerIsWarm) {
  run.seconds = 2;
  TrainLimit limit(run, meter, control);
  EXPECT_EQ(steps(limit, 50), 50);
  EXPECT_FALSE(meter.running());
  control.warm = control.others_done = true;
  EXPECT_EQ(steps(limit, 1000), 20);
}

TEST_F(TrainLimitTest, GoesOnUntimedUntilAllAreDone) {
  run.seconds = 2;
  control.warm = true;
  TrainLimit limit(run, meter, control);
  EXPECT_EQ(steps(limit, 100), 100);
  EXPECT_TRUE(control.done);
  EXPECT_DOUBLE_EQ(*meter.report("worker:0").seconds, 2);
  control.others_done = true;
  EXPECT_EQ(steps(limit, 100), 0);
}

// A run that is started again goes on from this count, which leaves out the untimed steps.
TEST_F(TrainLimitTest, TellsHowManySecondsItHasCounted) {
  run.seconds = 2;
  TrainLimit limit(run, meter, alone);
  EXPECT_EQ(limit.seconds_counted(), 0);
  EXPECT_EQ(steps(limit, 25), 25);
  EXPECT_DOUBLE_EQ(limit.seconds_counted(), 1.5);
}

// The others have counted their seconds since before this worker joined.
TEST_F(TrainLimitTest, OfAWorkerThatWasStartedAgainEndsWithTheFirst) {
  run.seconds = 2;
  control.warm = control.others_done = true;
  control.some_done = true;
  EXPECT_EQ(steps(*std::make_unique<TrainLimit>(run, meter, control), 15), 15);
  control.begun = true;
  TrainLimit late(run, meter, control);
  control.some_done = false;
  EXPECT_EQ(steps(late, 3), 3);
  control.some_done = true;
  EXPECT_EQ(steps(late, 100), 0);
  EXPECT_TRUE(control.done);
}

TEST_F(TrainLimitTest, WithoutALimitGoesOn) {
  TrainLimit limit(run, meter, alone);
  EXPECT_EQ(steps(limit, 500), 500);
}

}  // namespace
}  // namespace paceline
