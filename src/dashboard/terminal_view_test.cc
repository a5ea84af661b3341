#include "dashboard/terminal_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dashboard/live_text.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Report report() {
  TaskReport worker;
  worker.task = "worker:0";
  worker.steps = 1500;
  worker.seconds = 15;
  worker.steps_per_s = 100;
  worker.examples_per_s = 3200;
  worker.unit = "images";
  worker.step_ms_p50 = 9.5;
  worker.share = {{"compute", 0.75}, {"pull", 0.25}};
  LinkReport link;
  link.to = "ps:0";
  link.kind = "tcp";
  link.round_trip_us = 48;
  link.sent = 2.5e6;
  link.received = 7e6;
  worker.links = {link};
  TaskReport ps;
  ps.task = "ps:0";
  ps.steps = 1500;
  ps.share = {{"apply", 0.5}, {"queue", 0.1}, {"idle", 0.4}};
  Report report;
  report.model = "mlp";
  report.strategy = "async";
  report.tasks = {worker, ps};
  report.global_step = 1500;
  report.last_loss = 0.25;
  report.expected = ExpectedSpeed{.steps_per_s = 104, .low = 98, .high = 110, .limit = ""};
  return report;
}

TEST(TerminalView, ShowsARunThatHasEnded) {
  const std::string view = terminal_view(state_json(report()), 100, false);
  EXPECT_THAT(view, HasSubstr("mlp  async  ended  15 s\n"));
  EXPECT_THAT(view, HasSubstr("100 steps/s (expected 104, 98 to 110)  step 1,500  loss 0.25\n"));
  EXPECT_THAT(view, HasSubstr("Most of the time (75%) went to kernels"));
  EXPECT_THAT(view, HasSubstr("worker:0"));
  EXPECT_THAT(view, HasSubstr(std::string(25, 'c') + std::string(8, 'p') + "\n"));
  EXPECT_THAT(view,
              HasSubstr("worker:0 > ps:0         tcp          48 us      2.5 MB        7 MB"));
  EXPECT_THAT(view, HasSubstr("time: c compute  p pull  a apply  q queue\n"));
  EXPECT_THAT(view, Not(HasSubstr("\x1b")));
}

TEST(TerminalView, KeepsToTheWidthOfTheTerminal) {
  for (const int columns : {20, 60, 80, 200}) {
    const std::string view = terminal_view(state_json(report()), columns, false);
    for (std::size_t at = 0, end = 0; (end = view.find('\n', at)) != std::string::npos;
         at = end + 1) {
      EXPECT_LE(int(end - at), columns) << view.substr(at, end - at);
    }
  }
}

TEST(TerminalView, GivesATerminalNoCommandsOfTheRun) {
  Report evil = report();
  evil.model = "mlp\x1b[2J";
  EXPECT_THAT(terminal_view(state_json(evil), 100, false), Not(HasSubstr("\x1b")));
}

TEST(TerminalView, WhatIsNoStateIsAnError) {
  EXPECT_THROW(terminal_view("<html>", 80, false), Error);
  EXPECT_THROW(terminal_view("{}", 80, false), Error);
}

}  // namespace
}  // namespace paceline
