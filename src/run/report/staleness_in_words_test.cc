#include "run/report/staleness_in_words.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TaskReport worker_that_read(std::int64_t steps, double staleness) {
  TaskReport task;
  task.task = "worker:0";
  task.steps = steps;
  task.staleness_mean = staleness;
  return task;
}

Report run_of(double first_loss, double last_loss) {
  Report run;
  run.strategy = "async";
  run.loss_begin = {first_loss, 0.5, 20};
  run.loss_end = {last_loss, 0.5, 20};
  run.tasks = {worker_that_read(100, 4), worker_that_read(300, 0.8)};
  return run;
}

TEST(StalenessInWords, ARunThatEndedAboveItsBeginningSaysWhyAndWhatHelps) {
  EXPECT_EQ(stale_end(run_of(2, 3)),
            "The loss ended above where it began, at 3. Its workers computed with values that were "
            "1.6 updates of others old on average (staleness). A lower learning rate helps, or "
            "fewer workers, or --strategy ssp, which lets none run ahead.");
}

TEST(StalenessInWords, ARunThatWaitsForSlowWorkersIsToldOfItsBound) {
  Report run = run_of(2, 3);
  run.strategy = "ssp";
  EXPECT_TRUE(stale_end(run).ends_with("or fewer workers, or a lower --staleness."));
}

TEST(StalenessInWords, ARunThatLearnedOrWasNotStaleSaysNothing) {
  EXPECT_EQ(stale_end(run_of(3, 2)), "");
  EXPECT_EQ(stale_end(run_of(2, 2.3)), "") << "within the noise of its batches";
  Report run = run_of(2, 3);
  run.tasks = {worker_that_read(100, 0.99)};
  EXPECT_EQ(stale_end(run), "");
  run.tasks[0].staleness_mean.reset();
  EXPECT_EQ(stale_end(run), "");
  run = run_of(2, 3);
  run.loss_end.reset();
  EXPECT_EQ(stale_end(run), "");
}

}  // namespace
}  // namespace paceline
