// Tests paceline explain, and the last lines of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/temporary_folder.h"
#include "explain/explain.h"
#include "tests/held_saves.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class ExplainTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST_F(ExplainTest, SaysOfARunThatHasEndedWhatItsLastLineSaid) {
  const std::string out = folder_.path("out"), json = folder_.path("finding.json");
  const Finished run = run_paceline(
      {"train", "mlp", "--hidden", "48", "--batch", "16", "--steps", "40", "--out", out});
  ASSERT_EQ(run.status, 0) << run.output;
  const Finished told = run_paceline({"explain", out, "--json", json});
  ASSERT_EQ(told.status, 0) << told.output;
  EXPECT_THAT(run.output, HasSubstr(told.output));
  std::ifstream file(json);
  const auto finding = nlohmann::json::parse(file);
  EXPECT_THAT(told.output, HasSubstr(finding["sentence"].get<std::string>()));
  EXPECT_GT(finding["steps_per_s"], 0);
  EXPECT_EQ(run_paceline({"explain", out + "/report.json"}).output, told.output);
}

TEST_F(ExplainTest, NeedsARunWithTimedSteps) {
  const std::string report = folder_.path("report.json");
  EXPECT_THAT(run_paceline({"explain", report}).output, HasSubstr("no report at"));
  ASSERT_EQ(run_paceline({"train", "mlp", "--hidden", "48", "--batch", "16", "--steps", "3",
                          "--report", report})
                .status,
            0);
  const Finished told = run_paceline({"explain", report});
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.output, HasSubstr(report + ": no step of this run was timed"));
  EXPECT_THAT(told.output, HasSubstr("train longer"));
}

TEST_F(ExplainTest, OfARunThatFailedAtOnceItsErrorIsTheAnswer) {
  const std::string report = folder_.path("report.json");
  Report failed;
  failed.model = "mlp";
  failed.tasks.emplace_back().task = "worker:0";
  failed.error = "lost ps:0";
  write_report(report, failed);
  const Finished told = run_paceline({"explain", report});
  EXPECT_EQ(told.status, 0) << told.output;
  EXPECT_EQ(told.output,
            "The run ended: lost ps:0\nNo step was timed before: the first 10 never are.\n");
}

TEST_F(ExplainTest, ReportsTellOfCopiesAndOfWhatEachPsKeeps) {
  const std::string report = folder_.path("report.json");
  const Finished run = run_paceline({"train", "mlp", "--hidden", "48", "--device", "sim",
                                     "--sim-step-ms", "1", "--sim-copy-gbps", "1", "--ps", "2",
                                     "--workers", "1", "--steps", "40", "--report", report});
  ASSERT_EQ(run.status, 0) << run.output;
  const Report told = read_report(report);
  ASSERT_EQ(told.tasks.size(), 3U);
  // The batch is copied to the device, and each variable to the device and back.
  const double values = 256 * 48 + 48 + 48 * 48 + 48 + 48 * 256 + 256;
  const double bytes = sizeof(float) * (2 * 128 * 256 + 2 * values);
  EXPECT_NEAR(told.tasks[0].copies_ms.value_or(0), bytes * 1e-6, bytes * 1e-7);
  double kept = 0;
  for (const int ps : {1, 2}) {
    ASSERT_TRUE(told.tasks[std::size_t(ps)].kept);
    EXPECT_NE(told.tasks[std::size_t(ps)].kept->largest, "");
    kept += told.tasks[std::size_t(ps)].kept->bytes;
  }
  EXPECT_EQ(kept, sizeof(float) * values);
}

TEST_F(ExplainTest, SaysThatCheckpointsAreLate) {
  const std::string report = folder_.path("report.json");
  HeldSaves saves(folder_.path("pipe"), "/index.json");
  saves.hold();
  Process run(saves.of(
      paceline_words({"train", "mlp", "--hidden", "48", "--batch", "16", "--set", "print_every=1",
                      "--save-every", "1", "--out", folder_.path("out"), "--report", report})));
  ASSERT_TRUE(run.wait_for(HeldSaves::kSaid, 60s)) << run.output();
  // By now it would have saved twice.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run.wait_for_more("Step: ", 60s)) << run.output();
  saves.let_go();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait_exit(60s), 130) << run.output();
  const Report told = read_report(report);
  EXPECT_GE(told.value("checkpoints", "written").value_or(0), 1);
  EXPECT_GT(told.value("checkpoints", "late_s").value_or(0), 0);
  EXPECT_GT(told.value("checkpoints", "bytes_per_s").value_or(0), 0);
}

// Predicts runs that are distributed otherwise, from a report; nothing is run.
class WhatIfTest : public ExplainTest {
 protected:
  WhatIfTest() {
    run_.model = "mlp";
    run_.strategy = "async";
    run_.flags = {{"--device", "sim"}, {"--sim-step-ms", "20"}, {"--ps", "1"},
                  {"--workers", "2"},  {"--lab-hosts", "3"},    {"--lab-gbps", "0.1"},
                  {"hidden", "256"}};
    for (const char* const name : {"worker:0", "worker:1"}) {
      TaskReport& worker = run_.tasks.emplace_back();
      worker.task = name;
      worker.steps = 100;
      worker.steps_per_s = 5;
    }
  }
  Finished what_if(const std::string& changes) {
    const std::string report = folder_.path("report.json");
    write_report(report, run_);
    return run_paceline({"explain", report, "--what-if", changes}, 60s);
  }

  Report run_;
};

TEST_F(WhatIfTest, PredictsARunThatIsDistributedOtherwise) {
  const Finished faster = what_if("gbps=1,wire=bfloat16");
  EXPECT_EQ(faster.status, 0) << faster.output;
  EXPECT_THAT(faster.output, HasSubstr("With gbps=1,wire=bfloat16: 10 → "));
  EXPECT_THAT(faster.output, HasSubstr("then the limit would be: "));
  EXPECT_EQ(what_if("ps=2,workers=3").status, 0);
  // Tasks stay on their hosts, unless the number of tasks changes.
  run_.flags[4] = {"--lab-place", "ps+1/1"};
  EXPECT_THAT(what_if("accumulate=1").output, HasSubstr("(1.00 ×)"));
  EXPECT_EQ(what_if("workers=4").status, 0);
  for (TaskReport& worker : run_.tasks) worker.steps_per_s.reset();
  EXPECT_THAT(what_if("ps=2").output,
              HasSubstr("The run was too short to be timed. The predictor"));
}

// The prediction does not use the speed of the machine that runs the test.
TEST_F(WhatIfTest, UsesTheSpeedOfTheRunsMachine) {
  run_.expected = {.steps_per_s = 10, .low = 9, .high = 11, .limit = ""};
  run_.expected->machine = {{"cores", 2}, {"gflops", 100}, {"gbytes_per_s", 0.001}};
  EXPECT_THAT(what_if("gbps=10").output, HasSubstr("the limit would be: ps:0 applies rules"));
}

// A report also has settings with their defaults, and some of these may not be given together.
TEST_F(WhatIfTest, TakesSettingsThatMayNotBeGivenTogether) {
  run_.model = "resnet";
  run_.flags.back() = {"depth", "20"};
  run_.flags.push_back({"units", "18"});
  const Finished deep = what_if("ps=2");
  EXPECT_EQ(deep.status, 0) << deep.output;
}

TEST_F(WhatIfTest, RefusesWrongChanges) {
  EXPECT_THAT(what_if("pss=2").output, HasSubstr("--what-if pss=2: must be a change such as ps=2"));
  EXPECT_THAT(what_if("ps=2,ps=4").output, HasSubstr("--what-if ps=2,ps=4: ps is given twice"));
  for (const std::string list : {"ps=2,", ",ps=2", ","}) {
    EXPECT_THAT(what_if(list).output, HasSubstr("--what-if " + list + ": a change is missing"));
  }
  // The error names the change and not its flag, which the user did not give.
  for (const std::string one : {"ps=1.5", "batch=0", "gbps=0", "wire=float3"}) {
    EXPECT_THAT(what_if(one).output, HasSubstr("--what-if " + one + ": must be ")) << one;
  }
  for (const std::string none : {"strategy=nope", "strategy=auto"}) {
    EXPECT_THAT(what_if(none).output, HasSubstr("--what-if " + none + ": must name a strategy"));
  }
  EXPECT_THAT(what_if("strategy=allreduce").output,
              HasSubstr("--what-if strategy=allreduce: --strategy allreduce needs a cluster"));
}

TEST_F(WhatIfTest, RefusesRunsThatItCannotPlaceOrBuild) {
  run_.flags[2] = {"--ps-hosts", "a:1"};
  EXPECT_THAT(what_if("wire=bfloat16").output, HasSubstr("and this one had --ps-hosts"));
  run_.model = "mine";
  EXPECT_THAT(what_if("ps=2").output, HasSubstr("--predict makes a program of one's own predict"));
}

// On a loaded machine other causes may cost more, so the stopped task need not come first.
TEST_F(ExplainTest, FindsTheTaskThatWasStopped) {
  const std::string report = folder_.path("report.json"), ps = free_address(), a = free_address();
  const auto task = [&](const std::string& name) {
    return paceline_words({"train", "mlp", "--hidden", "48", "--batch", "16", "--device", "sim",
                           "--sim-step-ms", "5", "--seconds", "3", "--cluster",
                           "ps=" + ps + ";worker=" + a, "--task", name, "--report", report});
  };
  Process server(paceline_words({"train", "mlp", "--hidden", "48", "--cluster",
                                 "ps=" + ps + ";worker=" + a, "--task", "ps:0"}));
  Process worker(task("worker:0"));
  ASSERT_TRUE(worker.wait_for("Expected", 30s)) << worker.output();
  worker.signal(SIGSTOP);
  std::this_thread::sleep_for(1s);
  worker.signal(SIGCONT);
  ASSERT_EQ(worker.wait_exit(60s), 0) << worker.output();
  const std::vector<Finding> found = findings_of(read_report(report));
  const auto stopped = std::ranges::find(found, Limit::kStopped, &Finding::cause);
  ASSERT_NE(stopped, found.end()) << worker.output() << read_report(report).to_json();
  EXPECT_EQ(stopped->task, "worker:0");
  EXPECT_THAT(stopped->sentence, HasSubstr("worker:0 stood still for"));
}

TEST_F(ExplainTest, BeginsWithHowARunEndedThatFailed) {
  Report run;
  run.model = "mlp";
  run.error = "worker:1 failed first: it was killed by signal 9";
  TaskReport& worker = run.tasks.emplace_back();
  worker.task = "worker:0";
  worker.seconds = 10;
  worker.steps_per_s = 5;
  worker.share = {{"compute", 1.0}};
  const std::string report = folder_.path("report.json");
  write_report(report, run);
  EXPECT_THAT(run_paceline({"explain", report}, 60s).output,
              HasSubstr("The run ended: worker:1 failed first: it was killed by signal 9\n"));
}

TEST_F(ExplainTest, TheChiefOfTasksThatWereStartedOneByOneSaysWhatAllOfThemMade) {
  const std::string spec =
      "ps=" + free_address() + ";worker=" + free_address() + "," + free_address();
  const auto task = [&](const std::string& name) {
    return paceline_words({"train", "mlp", "--hidden", "16", "--batch", "16", "--device", "sim",
                           "--sim-step-ms", "20", "--seconds", "4", "--cluster", spec, "--task",
                           name});
  };
  Process server(task("ps:0")), chief(task("worker:0")), other(task("worker:1"));
  ASSERT_EQ(chief.wait_exit(60s), 0) << chief.output();
  EXPECT_THAT(chief.output(), ContainsRegex("Expected [0-9.]+ steps/s .* and made [0-9.]+"));
}

// The machine may be loaded, so the test stops the task again and again until its stops cost the
// run the most.
TEST_F(ExplainTest, SaysWhileAClusterTrainsWhichTaskStoodStill) {
  const std::string spec =
      "ps=" + free_address() + ";worker=" + free_address() + "," + free_address();
  const auto task = [&](const std::string& name) {
    return paceline_words({"train", "mlp", "--hidden", "16", "--batch", "16", "--device", "sim",
                           "--sim-step-ms", "5", "--seconds", "3600", "--cluster", spec, "--task",
                           name});
  };
  Process server(task("ps:0")), chief(task("worker:0")), other(task("worker:1"));
  ASSERT_TRUE(chief.wait_for("Step: ", 60s)) << chief.output();
  bool said = false;
  for (const Deadline until = Deadline::after(200s); !said && !until.passed();) {
    std::this_thread::sleep_for(4s);
    other.signal(SIGSTOP);
    std::this_thread::sleep_for(2s);
    other.signal(SIGCONT);
    said = chief.wait_for("worker:1 stood still for ", 4s);
  }
  EXPECT_TRUE(said) << chief.output();
}

}  // namespace
}  // namespace paceline::testing
