#include "explain/cause_watch.h"

#include <gmock/gmock.h>

#include "explain/report_window.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A worker whose counters grow each second by given amounts.
class Growing {
 public:
  void stop(double seconds) { stops_ += seconds; }
  void second(double input) {
    ++seconds_;
    disk_read_ += 100 * input;
    input_ += input;
    compute_ += 1 - input;
    steps_ += 10 * (1 - input);
  }
  Report report() const {
    TaskReport task;
    task.task = "worker:0";
    task.steps = std::int64_t(steps_);
    task.unit = "images";
    task.seconds = seconds_;
    task.use.seconds = seconds_;
    task.use.cores = 1;
    task.use.disk_read = disk_read_ / seconds_;
    task.use.pressure = {.queued = 0.0,
                         .waited = 0.0,
                         .machine_cores = 1.0,
                         .stops = {.seconds = stops_, .longest = stops_}};
    task.steps_per_s = steps_ / seconds_;
    task.examples_per_s = 64 * steps_ / seconds_;
    task.share = {{"input", input_ / seconds_}, {"compute", compute_ / seconds_}};
    Report run;
    run.strategy = "alone";
    run.cores = 2;
    run.tasks = {task};
    return run;
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0, input_ = 0, compute_ = 0, steps_ = 0, stops_ = 0, disk_read_ = 0;
};

TEST(ReportBetween, HoldsWhatWasMadeMeanwhile) {
  Growing run;
  for (int i = 0; i < 10; ++i) run.second(0);
  const Report before = run.report();
  for (int i = 0; i < 5; ++i) run.second(0.6);
  const Report window = report_between(before, run.report());
  ASSERT_EQ(window.tasks.size(), 1U);
  const TaskReport& task = window.tasks[0];
  EXPECT_DOUBLE_EQ(task.seconds.value_or(0), 5);
  EXPECT_NEAR(task.steps_per_s.value_or(0), 4, 1e-9);
  EXPECT_NEAR(task.share[0].second, 0.6, 1e-9);
  EXPECT_EQ(task.steps, 20);
  EXPECT_NEAR(task.use.disk_read.value_or(0), 60, 1e-9);
  EXPECT_NEAR(task.use.pressure.machine_cores.value_or(0), 1, 1e-9);
  EXPECT_TRUE(report_between({}, run.report()).tasks.empty());
}

TEST(CauseWatch, TellsACauseOnceWhenItHasStayed) {
  Growing run;
  CauseWatch watch;
  std::string lines;
  const auto go = [&](int seconds, double input) {
    lines.clear();
    for (int i = 0; i < seconds; ++i) {
      run.second(input);
      lines += watch.look(run.report(), run.seconds());
    }
    return lines;
  };
  EXPECT_THAT(go(20, 0.01), IsEmpty()) << "nothing was wrong, and nothing is said";
  EXPECT_THAT(go(2, 0.6), IsEmpty()) << "it may pass";
  EXPECT_THAT(go(12, 0.01), IsEmpty());
  EXPECT_THAT(go(12, 0.6), HasSubstr("Making batches takes"));
  EXPECT_THAT(go(20, 0.6), IsEmpty()) << "it was said";
  EXPECT_EQ(go(15, 0.01), "Nothing holds the run back any more.");
  run.stop(0.9);
  EXPECT_THAT(go(1, 0.01), HasSubstr("worker:0 stood still for 0.9 s")) << "it is over already";
}

}  // namespace
}  // namespace paceline
