// Tests of the report that a session makes of its run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/temporary_folder.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "run/report/report.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class SessionReport : public SessionTest {
 protected:
  SessionReport() { run_.report = folder_.path("report.json"); }

 private:
  const TemporaryFolder folder_;
};

TEST_F(SessionReport, TellsWhatWasMeasured) {
  run_.steps = 30;
  {
    SessionOptions options;
    options.model = "line";
    Session session(training(), cluster_, run_, options);
    session.report("perplexity", "train", 40.5);
    session.run(feeding());
  }
  const Report report = read_report(run_.report);
  EXPECT_EQ(report.model, "line");
  EXPECT_EQ(report.error, "");
  ASSERT_EQ(report.tasks.size(), 1u);
  EXPECT_EQ(report.tasks[0].task, "worker:0");
  EXPECT_EQ(report.tasks[0].steps, 30);
  EXPECT_EQ(report.tasks[0].unit, "examples");
  EXPECT_NEAR(*report.tasks[0].examples_per_s, 16 * *report.tasks[0].steps_per_s, 1e-6);
  double sum = 0;
  for (const auto& [name, share] : report.tasks[0].share) sum += share;
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_GT(*report.first_loss, *report.last_loss);
}

TEST_F(SessionReport, TellsWhatTheTaskTookOfItsMachine) {
  run_.steps = 30;
  { Session(training(), cluster_, run_).run(feeding()); }
  const TaskUse use = read_report(run_.report).tasks[0].use;
  EXPECT_TRUE(use.cores.has_value());
  EXPECT_GT(use.peak_memory.value_or(0), 0);
  EXPECT_GT(use.device_busy.value_or(0), 0);
  EXPECT_LE(use.device_busy.value_or(2), 1 + 1e-9);
  EXPECT_EQ(use.sent, 0);
  { Session(training(), cluster_, run_); }
  EXPECT_EQ(read_report(run_.report).tasks[0].use, TaskUse());
}

TEST_F(SessionReport, MeasuresNothingInTenSteps) {
  run_.steps = 10;
  { Session(training(), cluster_, run_).run(feeding()); }
  const Report report = read_report(run_.report);
  EXPECT_EQ(report.tasks[0].steps, 10);
  EXPECT_FALSE(report.tasks[0].steps_per_s.has_value());
}

TEST_F(SessionReport, KeepsTheError) {
  {
    Session session(training(), cluster_, run_);
    EXPECT_THROW(session.run([](Feed&) { throw Error(ErrorCode::kDataLoss, "torn batch"); }),
                 Error);
  }
  EXPECT_THAT(read_report(run_.report).error, HasSubstr("torn batch"));
}

TEST_F(SessionReport, LeavesEvaluationsOutOfTheStepTime) {
  struct Evaluate : Hook {
    bool after_step(Session& session, const StepResult&) override {
      session.begin_evaluation();
      return true;
    }
  };
  run_.steps = 20;
  {
    Session session(training(), cluster_, run_);
    session.add(Evaluate());
    session.run(feeding());
  }
  const TaskReport task = read_report(run_.report).tasks[0];
  for (const auto& [name, share] : task.share) EXPECT_GE(share, 0) << name;
}

}  // namespace
}  // namespace paceline
