#include "run/report/report_strategy.h"

#include <gtest/gtest.h>

#include "run/report/testing/sample_report.h"

namespace paceline {
namespace {

Report run_of(const std::string& strategy, int workers, int ps) {
  Report run;
  run.strategy = strategy;
  for (int i = 0; i < workers; ++i) run.tasks.push_back(worker_report(i));
  for (int i = 0; i < ps; ++i) run.tasks.push_back(ps_report(i));
  return run;
}

TEST(ReportStrategy, TasksTellLocalStepsFromOneProcess) {
  EXPECT_FALSE(in_rounds(run_of("alone", 1, 0)));
  EXPECT_TRUE(in_rounds(run_of("local_sgd", 2, 0)));
  EXPECT_TRUE(in_rounds(run_of("local_sgd", 2, 1)));
}

TEST(ReportStrategy, AReportOfAnOlderVersionGivesAStrategyItsOldName) {
  EXPECT_EQ(strategy_kind(run_of("local", 1, 0))->name, "alone");
  EXPECT_EQ(strategy_kind(run_of("local", 2, 1))->name, "local_sgd");
  EXPECT_EQ(strategy_kind(run_of("mixed", 2, 1))->name, "hybrid");
}

TEST(ReportStrategy, FlagsTellWhetherLocalStepsHaveRounds) {
  Report run = run_of("local_sgd", 2, 1);
  run.flags = {{"--outer", "async"}};
  EXPECT_FALSE(in_rounds(run));
}

TEST(ReportStrategy, OneThatThisVersionDoesNotKnowHasNoTraits) {
  EXPECT_EQ(strategy_kind(run_of("gossip", 2, 1)), nullptr);
  EXPECT_FALSE(in_rounds(run_of("gossip", 2, 1)));
}

}  // namespace
}  // namespace paceline
