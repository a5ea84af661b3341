#include "dashboard/live_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dashboard/live_text.h"
#include "explain/explain.h"
#include "explain/report_window.h"
#include "run/report/circumstances.h"
#include "run/report/testing/written_report.h"

namespace paceline {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;
using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kMetrics = R"(# HELP paceline_info The run; the value is always 1.
# TYPE paceline_info gauge
paceline_info{model="mlp",strategy="sync",version="VERSION",out="run"} 1
# HELP paceline_run_seconds Seconds since the run began.
# TYPE paceline_run_seconds gauge
paceline_run_seconds 2
# HELP paceline_global_step The global step.
# TYPE paceline_global_step gauge
paceline_global_step 60
# HELP paceline_loss The loss of the chief's last step.
# TYPE paceline_loss gauge
paceline_loss 1
# HELP paceline_steps_per_second Steps a second of all workers now.
# TYPE paceline_steps_per_second gauge
# HELP paceline_examples_per_second Examples a second of all workers now.
# TYPE paceline_examples_per_second gauge
# HELP paceline_expected_steps_per_second The speed that was expected before the first step, with its 80% interval.
# TYPE paceline_expected_steps_per_second gauge
paceline_expected_steps_per_second{bound="middle"} 8590
paceline_expected_steps_per_second{bound="low"} 537
paceline_expected_steps_per_second{bound="high"} 9110
# HELP paceline_task_steps_total Own steps of a worker; steps that a ps applied.
# TYPE paceline_task_steps_total counter
paceline_task_steps_total{task="worker:0"} 110
paceline_task_steps_total{task="ps:0"} 40
# HELP paceline_task_steps_per_second Steps a second of a task now.
# TYPE paceline_task_steps_per_second gauge
# HELP paceline_task_seconds_total Seconds of timed steps by activity.
# TYPE paceline_task_seconds_total counter
paceline_task_seconds_total{task="worker:0",activity="input"} 0.3125
paceline_task_seconds_total{task="worker:0",activity="compute"} 1.25
paceline_task_seconds_total{task="worker:0",activity="pull"} 0.625
paceline_task_seconds_total{task="worker:0",activity="push"} 0.15625
paceline_task_seconds_total{task="worker:0",activity="apply"} 0
paceline_task_seconds_total{task="worker:0",activity="wait"} 0
paceline_task_seconds_total{task="worker:0",activity="other"} 0.15625
paceline_task_seconds_total{task="ps:0",activity="apply"} 0.00033907500000000004
paceline_task_seconds_total{task="ps:0",activity="queue"} 0.0026030000000000003
paceline_task_seconds_total{task="ps:0",activity="idle"} 0.0655545
# HELP paceline_task_step_seconds The time of a timed step so far, by quantile.
# TYPE paceline_task_step_seconds gauge
paceline_task_step_seconds{task="worker:0",quantile="0.5"} 0.025
paceline_task_step_seconds{task="worker:0",quantile="0.99"} 0.0305
# HELP paceline_task_staleness Mean staleness of a worker's contributions now.
# TYPE paceline_task_staleness gauge
# HELP paceline_task_heard_seconds Seconds since a task was heard of.
# TYPE paceline_task_heard_seconds gauge
paceline_task_heard_seconds{task="worker:0"} 2
paceline_task_heard_seconds{task="ps:0"} 2
# HELP paceline_task_cores Cores that a task keeps busy, on average so far.
# TYPE paceline_task_cores gauge
paceline_task_cores{task="worker:0"} 0.873
paceline_task_cores{task="ps:0"} 0.0434
# HELP paceline_task_peak_memory_bytes The largest resident memory of a task.
# TYPE paceline_task_peak_memory_bytes gauge
paceline_task_peak_memory_bytes{task="worker:0"} 313978880
paceline_task_peak_memory_bytes{task="ps:0"} 15556608
# HELP paceline_link_bytes_total Bytes of frames over a link.
# TYPE paceline_link_bytes_total counter
paceline_link_bytes_total{task="worker:0",to="ps:0",direction="sent"} 86900000
paceline_link_bytes_total{task="worker:0",to="ps:0",direction="received"} 91300000
)";

class LiveRunTest : public ::testing::Test {
 protected:
  static RunAbout about() {
    return {.out = "run", .steps = 1000, .seconds = {}, .tasks = {"worker:0", "worker:1", "ps:0"}};
  }
  /// Returns the progress of a worker that computes for the share `compute` of its time, and waits
  /// for the rest.
  static TaskProgress worker(double at, std::int64_t steps, double compute = 0.5) {
    TaskReport task;
    task.task = "worker:0";
    task.steps = steps;
    task.seconds = at;
    task.steps_per_s = double(steps) / at;
    task.examples_per_s = 32 * *task.steps_per_s;
    task.unit = "images";
    task.share = {{"compute", compute}, {"wait", 1 - compute}};
    task.staleness_mean = 2;
    LinkReport link;
    link.to = "ps:0";
    link.step_sent = 100;
    link.step_received = 300;
    task.links = {link};
    TaskProgress progress;
    progress.at = at;
    progress.report.model = "mlp";
    progress.report.strategy = "async";
    progress.report.tasks = {task};
    progress.report.global_step = 2 * steps;
    progress.report.last_loss = 0.5;
    return progress;
  }

  TimePoint now_{100s};
  LiveRun run_{about(), now_};
};

TEST_F(LiveRunTest, BeforeATaskIsHeardOfNothingIsKnownOfIt) {
  const RunPoint point = run_.point(now_ + 3s);
  EXPECT_EQ(point.seconds, 3);
  EXPECT_EQ(point.steps_per_s, std::nullopt);
  EXPECT_EQ(run_.cause(now_), "");
  const Json state = Json::parse(state_json(run_, now_));
  EXPECT_EQ(state["state"], "starting");
  EXPECT_EQ(state["tasks"].size(), 3u);
  EXPECT_TRUE(state["tasks"][0]["heard_s"].is_null());
  EXPECT_TRUE(state["steps_per_s"].is_null());
}

TEST_F(LiveRunTest, SpeedAndSharesAreThoseOfTheLastSeconds) {
  run_.heard("worker:0", worker(100, 1000), now_);
  run_.heard("worker:0", worker(105, 1100, 0.48), now_ + 5s);
  const RecentTask recent = LiveRun::recent(run_.tasks().at("worker:0"));
  EXPECT_THAT(recent.steps_per_s, Optional(20.0));
  EXPECT_THAT(recent.staleness, Optional(2.0));
  EXPECT_THAT(recent.sent, Optional(2000.0));
  EXPECT_THAT(recent.received, Optional(6000.0));
  // It computed for 50.4 of 105 s so far, and for 50 of the first 100 s: 0.4 of the last 5 s.
  EXPECT_THAT(recent.share[0].second, DoubleNear(0.08, 1e-9));
  EXPECT_THAT(recent.share[1].second, DoubleNear(0.92, 1e-9));
  const std::vector<Report> before = {worker(100, 1000).report};
  const std::vector<Report> after = {worker(105, 1100, 0.48).report};
  EXPECT_EQ(run_.cause(now_ + 5s), explanation(report_between(merge(before), merge(after))));
}

TEST_F(LiveRunTest, ATaskThatIsSilentIsTheCauseWhileOthersAreHeard) {
  run_.heard("worker:0", worker(100, 1000), now_);
  run_.heard("worker:1", worker(100, 1000), now_);
  EXPECT_THAT(run_.cause(now_ + 5s), Not(HasSubstr("has said nothing")));
  EXPECT_THAT(run_.cause(now_ + 9s), Not(HasSubstr("has said nothing"))) << "the chief stood still";
  run_.heard("worker:0", worker(109, 1090), now_ + 9s);
  EXPECT_THAT(run_.cause(now_ + 9s), HasSubstr("worker:1 has said nothing for 9 s"));
}

TEST_F(LiveRunTest, TheHistoryHasTheNumbersOfTheProgram) {
  run_.heard("worker:0", worker(100, 1000), now_);
  run_.add_point(now_);
  TaskProgress progress = worker(101, 1010);
  progress.numbers = {{"loss/valid", 0.25}};
  run_.heard("worker:0", progress, now_ + 1s);
  progress.numbers = {{"loss/valid", 3}, {"accuracy", 0.5}};
  run_.heard("worker:1", progress, now_ + 1s);
  run_.add_point(now_ + 1s);
  const Json numbers = Json::parse(state_json(run_, now_ + 1s))["history"]["numbers"];
  EXPECT_EQ(numbers["loss/valid"], (Json{nullptr, 0.25}));
  EXPECT_EQ(numbers["accuracy"], (Json{nullptr, 0.5}));
}

TEST_F(LiveRunTest, WhatIsTenSecondsAgoCountsNoMore) {
  for (int i = 0; i <= 30; ++i) {
    run_.heard("worker:0", worker(100 + i, i < 15 ? 1000 : 1000 + 10 * (i - 14)), now_ + i * 1s);
  }
  EXPECT_THAT(LiveRun::recent(run_.tasks().at("worker:0")).steps_per_s, Optional(10.0));
}

TEST_F(LiveRunTest, TheSpeedOfAllWorkersIsTheirSum) {
  for (const char* task : {"worker:0", "worker:1"}) {
    run_.heard(task, worker(100, 1000), now_);
    run_.heard(task, worker(110, 1100), now_ + 10s);
  }
  EXPECT_THAT(run_.point(now_).steps_per_s, Optional(20.0));
  EXPECT_THAT(run_.point(now_).staleness, Optional(2.0)) << "the mean";
  EXPECT_THAT(run_.examples_per_s(), Optional(640.0));
  EXPECT_EQ(run_.report().tasks.size(), 2u);
}

TEST_F(LiveRunTest, ATaskThatWasStartedAgainBeginsAnew) {
  run_.heard("worker:0", worker(100, 1000), now_);
  run_.heard("worker:0", worker(5, 3), now_ + 1s);
  EXPECT_EQ(LiveRun::recent(run_.tasks().at("worker:0")).steps_per_s, std::nullopt);
}

TEST_F(LiveRunTest, SaysHowLongATaskHasMadeNoStep) {
  run_.heard("worker:0", worker(100, 1000), now_);
  run_.heard("worker:0", worker(100, 1000), now_ + 7s);
  const Json task = Json::parse(state_json(run_, now_ + 8s))["tasks"][0];
  EXPECT_EQ(task["still_s"], 8);
  EXPECT_EQ(task["heard_s"], 1);
}

TEST_F(LiveRunTest, WhatIsNoTaskOfTheRunIsLeftOut) {
  run_.heard("worker:7", worker(100, 1000), now_);
  EXPECT_EQ(run_.tasks().size(), 3u);
  run_.heard("worker:1", {}, now_);
  EXPECT_EQ(run_.report().tasks.size(), 0u);
}

TEST_F(LiveRunTest, AHistoryOfAnyLengthIsShort) {
  run_.heard("worker:0", worker(100, 1000), now_);
  for (int i = 0; i < 5000; ++i) run_.add_point(now_ + i * 1s);
  EXPECT_LT(run_.history().size(), 360u);
  EXPECT_GT(run_.history().size(), 150u);
  const double step = run_.history()[1].seconds - run_.history()[0].seconds;
  for (std::size_t i = 1; i < run_.history().size(); ++i) {
    ASSERT_EQ(run_.history()[i].seconds - run_.history()[i - 1].seconds, step);
  }
}

TEST_F(LiveRunTest, TheStateHasTasksAsReportsHaveThem) {
  run_.heard("worker:0", worker(100, 1000), now_);
  run_.add_point(now_);
  const Json state = Json::parse(state_json(run_, now_));
  EXPECT_EQ(state["run"]["model"], "mlp");
  EXPECT_EQ(state["run"]["out"], "run");
  EXPECT_EQ(state["goal"]["global_step"], 1000);
  EXPECT_EQ(state["global_step"], 2000);
  EXPECT_EQ(state["tasks"][0]["unit"], "images");
  EXPECT_EQ(state["tasks"][0]["links"][0]["to"], "ps:0");
  EXPECT_EQ(state["tasks"][1], Json::parse(R"({"task":"worker:1","heard_s":null,"still_s":null,
    "recent":{"steps_per_s":null,"examples_per_s":null,"share":{},"staleness":null,
    "bytes_per_s":{"sent":null,"received":null}},"lines":[]})"));
  EXPECT_EQ(state["history"]["worker_share"]["compute"][0], 0.5);
}

TEST_F(LiveRunTest, MetricsAreWhatPrometheusReads) {
  TaskProgress progress = worker(100, 1000);
  progress.report.model = "a\"b\\c\nd";
  progress.report.expected = ExpectedSpeed{.steps_per_s = 12, .low = 10, .high = 14, .limit = ""};
  run_.heard("worker:0", progress, now_);
  const std::string text = metrics_text(run_, now_ + 2s);
  EXPECT_THAT(text, HasSubstr("# TYPE paceline_task_steps_total counter\n"
                              "paceline_task_steps_total{task=\"worker:0\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("model=\"a\\\"b\\\\c\\nd\""));
  EXPECT_THAT(
      text, HasSubstr("paceline_task_seconds_total{task=\"worker:0\",activity=\"compute\"} 50\n"));
  EXPECT_THAT(text, HasSubstr("paceline_link_bytes_total{task=\"worker:0\",to=\"ps:0\",direction="
                              "\"received\"} 300000\n"));
  EXPECT_THAT(text, HasSubstr("paceline_expected_steps_per_second{bound=\"low\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("paceline_task_heard_seconds{task=\"worker:0\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("worker:1"))) << "it has said nothing";
}

// Prometheus finds metrics by name, so their names must never change.
TEST_F(LiveRunTest, MetricsAreThoseThatThereAlwaysWere) {
  const Report report = Report::from_json(kWrittenReport);
  LiveRun run({.out = "run", .steps = {}, .seconds = {}, .tasks = {"worker:0", "ps:0"}}, now_);
  for (const TaskReport& task : report.tasks) {
    TaskProgress progress;
    progress.report = report;
    progress.report.tasks = {task};
    run.heard(task.task, progress, now_);
  }
  std::string text = metrics_text(run, now_ + 2s);
  const std::string version = circumstances().version;
  text.replace(text.find(version), version.size(), "VERSION");
  EXPECT_EQ(text, kMetrics);
}

}  // namespace
}  // namespace paceline
