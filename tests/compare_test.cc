// Tests `paceline compare`, which puts two reports side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/report/report.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TaskReport worker(int index, double steps_per_s, double compute, double pull) {
  TaskReport task;
  task.task = "worker:" + std::to_string(index);
  task.steps = 150;
  task.seconds = 140 / steps_per_s;
  task.steps_per_s = steps_per_s;
  task.examples_per_s = 400 * steps_per_s;
  task.unit = "words";
  task.share = {{"input", 0.0}, {"compute", compute}, {"pull", pull}, {"push", 0.0},
                {"apply", 0.0}, {"wait", 0.0},        {"other", 0.0}};
  return task;
}

class Compare : public ::testing::Test {
 protected:
  Compare() {
    alone_.model = cluster_.model = "ptb";
    alone_.tasks = {worker(0, 50, 1.0, 0.0)};
    alone_.first_loss = 184.2;
    alone_.last_loss = 120.0;
    alone_.loss_begin = {184, 3, 20};
    alone_.loss_end = {120, 3, 20};
    TaskReport ps;
    ps.task = "ps:0";
    cluster_.tasks = {worker(0, 20, 0.75, 0.25), worker(1, 20, 0.75, 0.25), ps};
  }
  Finished compare(const std::vector<std::string>& more = {}) {
    write_report(folder_.path("alone"), alone_);
    write_report(folder_.path("cluster"), cluster_);
    std::vector<std::string> words = {"compare", folder_.path("alone"), folder_.path("cluster")};
    words.insert(words.end(), more.begin(), more.end());
    return run_paceline(words);
  }
  // Gives each of the cluster's two workers half of the steps, so that together they make as many.
  void make_as_many_steps() {
    for (const int i : {0, 1}) cluster_.tasks[i].steps = alone_.tasks[0].steps / 2;
  }
  TemporaryFolder folder_;
  Report alone_, cluster_;
};

TEST_F(Compare, SaysHowFastEachRunWasAndWhereTheRestWent) {
  const Finished run = compare({"--title", "a title"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.output, HasSubstr("a title, 150 to 300 steps\n"));
  EXPECT_THAT(run.output, HasSubstr("                    words/s  of alone  input compute pull"));
  EXPECT_THAT(run.output, HasSubstr("alone                20,000      1.00     0%    100%   0%"));
  EXPECT_THAT(run.output, HasSubstr("1 ps + 2 workers     16,000      0.80     0%     75%  25%"));
  EXPECT_THAT(run.output, HasSubstr("On the same cores about 1.00 is what to expect. "
                                    "Lost: 20%, most of it in pull.\n"));
}

TEST_F(Compare, CountsTheCoresOfTheRunsAndNotItsOwn) {
  alone_.cores = cluster_.cores = 1234;
  EXPECT_THAT(compare().output, HasSubstr("ptb, 1234 cores, 150 to 300 steps\n"));
  EXPECT_THAT(compare().output,
              HasSubstr("The same 1234 cores do all the work: about 1.00 is what to expect. "));
  cluster_.cores = 4;
  EXPECT_THAT(compare().output, HasSubstr("The runs had 1234 and 4 cores. "));
}

TEST_F(Compare, PutsTheSimulatedPairInALineOfItsOwn) {
  Report alone = alone_, cluster = cluster_;
  alone.tasks = {worker(0, 25, 1, 0)};
  cluster.tasks = {worker(0, 24, 1, 0), worker(1, 24, 1, 0)};
  write_report(folder_.path("sim-alone"), alone);
  write_report(folder_.path("sim-cluster"), cluster);
  const Finished run = compare({"--simulated", folder_.path("sim-alone"),
                                folder_.path("sim-cluster"), "--reported", "them: 1.09x"});
  EXPECT_THAT(run.output, HasSubstr("(simulated, 40 ms a step): 25.0 -> 48.0 steps/s, 1.92x   "
                                    "(reported for them: 1.09x)\n"));
}

TEST_F(Compare, RefusesARunThatFailedOrWasTooShort) {
  cluster_.error = "ps:0 died";
  EXPECT_EQ(compare().status, 1);
  EXPECT_THAT(compare().output, HasSubstr("ps:0 died"));
  cluster_.error.clear();
  cluster_.tasks[1].steps_per_s.reset();
  EXPECT_THAT(compare().output, HasSubstr("worker:1 of 1 ps + 2 workers made no timed step"));
}

TEST_F(Compare, ShowsHowTheLossOfEachRunFell) {
  cluster_.first_loss = 184.0;
  cluster_.last_loss = 140.0;
  cluster_.loss_begin = {184, 3, 20};
  cluster_.loss_end = {140, 3, 20};
  make_as_many_steps();
  const Finished run = compare();
  EXPECT_THAT(run.output, HasSubstr("other  loss\n"));
  EXPECT_THAT(run.output, HasSubstr("0%  184.2 -> 120\n"));
  EXPECT_THAT(run.output, HasSubstr("0%  184 -> 140\n"));
  EXPECT_THAT(run.output, HasSubstr("1 ps + 2 workers ended at a loss of 140, alone at 120.\n"));
  cluster_.loss_end = {140, 40, 20};
  EXPECT_THAT(compare().output, Not(HasSubstr("ended at"))) << "within the noise of its batches";
  cluster_.loss_end = {185, 3, 20};
  EXPECT_THAT(compare().output, Not(HasSubstr("learned nothing"))) << "nor is that any less";
  cluster_.loss_end = {190, 3, 20};
  EXPECT_THAT(compare().output,
              HasSubstr("1 ps + 2 workers learned nothing: its loss went from 184 to 190.\n"));
  for (Report* report : {&alone_, &cluster_}) {
    report->set("perplexity", "first", 8000);
    report->set("perplexity", "last", report == &alone_ ? 700 : 710);
  }
  EXPECT_THAT(compare().output, HasSubstr("other  perplexity\n"));
  EXPECT_THAT(compare().output, HasSubstr("0%  8000 -> 710\n"));
}

TEST_F(Compare, SaysOfARunThatEndedWorseThatItsWorkersWereStale) {
  cluster_.loss_begin = {184, 3, 20};
  cluster_.loss_end = {140, 3, 20};
  make_as_many_steps();
  for (int i : {0, 1}) cluster_.tasks[i].staleness_mean = 2.5;
  EXPECT_THAT(compare().output,
              HasSubstr("ended at a loss of 140, alone at 120. Its workers computed with values "
                        "that were 2.5 updates of others old on average (staleness)."));
  for (int i : {0, 1}) cluster_.tasks[i].staleness_mean = 0.9;
  EXPECT_THAT(compare().output, Not(HasSubstr("staleness")));
}

TEST_F(Compare, SaysWhatIsNotComparable) {
  cluster_.loss_end = {140, 3, 20};
  cluster_.loss_begin = {184, 3, 20};
  EXPECT_THAT(compare().output, HasSubstr("Not comparable: alone made 150 steps and 1 ps + 2 "
                                          "workers 300, so that their ends are of other moments"));
  EXPECT_THAT(compare().output, Not(HasSubstr("ended at a loss")));
  make_as_many_steps();
  EXPECT_THAT(compare().output, Not(HasSubstr("Not comparable")));
  alone_.cores = cluster_.cores = 2;
  alone_.tasks[0].use.cores = 0.5;
  alone_.tasks[0].use.seconds = 3;
  alone_.tasks[0].use.pressure.machine_cores = 1.9;
  EXPECT_THAT(compare().output, HasSubstr("Not comparable: alone ran under load. Other processes "
                                          "kept 1.4 of 2 cores busy."));
  alone_.tasks[0].use.pressure.machine_cores = 0.6;
  cluster_.tasks[1].use.seconds = 20;
  cluster_.tasks[1].use.pressure.stops = {.seconds = 9.2, .longest = 9.2};
  EXPECT_THAT(compare().output,
              HasSubstr("Not comparable: worker:1 of 1 ps + 2 workers stood still for 9.2 s."));
  EXPECT_THAT(compare().output, Not(HasSubstr("under load")));
}

TEST_F(Compare, TakesAnyRunsOfOneModel) {
  write_report(folder_.path("third"), alone_);
  const Finished three = compare({folder_.path("third")});
  EXPECT_EQ(three.status, 0) << three.output;
  EXPECT_THAT(three.output, HasSubstr("alone (" + folder_.path("alone") + ")"));
  EXPECT_THAT(three.output, HasSubstr("alone (" + folder_.path("third") + ")"));
  EXPECT_THAT(three.output, HasSubstr("1 ps + 2 workers: Lost: 20%, most of it in pull.\n"));
  const Finished one = run_paceline({"compare", folder_.path("cluster")});
  EXPECT_EQ(one.status, 0) << one.output;
  EXPECT_THAT(one.output, HasSubstr("of first"));
}

TEST_F(Compare, RefusesRunsOfSeveralModels) {
  cluster_.model = "mlp";
  const Finished run = compare();
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("alone is a run of ptb, "));
  EXPECT_THAT(run.output, HasSubstr("cluster of mlp"));
}

TEST_F(Compare, RefusesAFileThatIsNoReport) {
  const Finished run = run_paceline({"compare", "/dev/null", "/dev/null"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("/dev/null"));
}

}  // namespace
}  // namespace paceline::testing
