#include "dashboard/terminal_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dashboard/live_text.h"
#include "paceline/error.h"
#include "run/report/testing/sample_report.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Report report() {
  TaskReport worker = worker_report(0);
  worker.steps = 1500;
  worker.staleness_mean = 1.25;
  worker.share = {{"compute", 0.75}, {"pull", 0.25}};
  worker.links = {tcp_link(worker, 2.5e6, 7e6)};
  TaskReport ps = ps_report(0);
  ps.share = {{"apply", 0.5}, {"queue", 0.1}, {"idle", 0.4}};
  Report report = sample_report({worker, ps});
  report.global_step = 1500;
  report.last_loss = 0.25;
  return report;
}

TEST(TerminalView, ShowsARunThatHasEnded) {
  const std::string view = terminal_view(state_json(report()), 100, false);
  EXPECT_THAT(view, HasSubstr("cifar10  async  ended  20 s\n"));
  EXPECT_THAT(view, HasSubstr("10 steps/s (expected 20, 19 to 21)  step 1,500  loss 0.25\n"));
  EXPECT_THAT(view, HasSubstr("worker:0        1,500       10       98     1.25   0.90"));
  EXPECT_THAT(view, HasSubstr(std::string(25, 'c') + std::string(8, 'p') + "\n"));
  EXPECT_THAT(view,
              HasSubstr("worker:0 > ps:0         tcp            100 us      2.5 MB        7 MB"));
  EXPECT_THAT(view, HasSubstr("time: c compute  p pull  a apply  q queue\n"));
  EXPECT_THAT(view, Not(HasSubstr("\x1b")));
}

TEST(TerminalView, SaysThatASpeedIsExpectedOfMoreWorkersThanItShows) {
  Report of_one = report();
  of_one.expected->workers = 2;
  EXPECT_THAT(terminal_view(state_json(of_one), 100, false),
              HasSubstr("10 steps/s (of all 2 workers expected 20, 19 to 21)"));
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
  evil.model = "cifar10\x1b[2J";
  EXPECT_THAT(terminal_view(state_json(evil), 100, false), Not(HasSubstr("\x1b")));
}

TEST(TerminalView, WhatIsNoStateIsAnError) {
  EXPECT_THROW(terminal_view("<html>", 80, false), Error);
  EXPECT_THROW(terminal_view("{}", 80, false), Error);
}

}  // namespace
}  // namespace paceline
