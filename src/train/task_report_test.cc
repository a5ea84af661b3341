// Tests of the parts of a session's report about kernels, links and input.
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "run/report/report.h"
#include "train/testing/served.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

class SessionTaskReport : public SessionTest {
 protected:
  TaskReport report_after(int steps, const Cluster& cluster) {
    run_.report = folder_.path("report.json");
    {
      Session session(training(), cluster, run_);
      for (int step = 0; step < steps; ++step) session.step(feeding());
    }
    return read_report(run_.report).tasks.at(0);
  }
  const TemporaryFolder folder_;
};

TEST_F(SessionTaskReport, NamesTheOpsWhoseKernelsTookMost) {
  const TaskReport report = report_after(40, cluster_);
  ASSERT_GT(report.kernels.size(), 1U);
  double share = 0, longest = report.kernels[0].ms;
  for (const KernelReport& kernel : report.kernels) {
    EXPECT_GT(kernel.ms, 0) << kernel.op;
    EXPECT_GE(kernel.per_step, 1) << kernel.op;
    EXPECT_LE(kernel.ms, longest) << kernel.op;
    longest = kernel.ms;
    share += kernel.share;
  }
  EXPECT_GT(share, 0.5);
  EXPECT_LT(share, 1.0001);
}

TEST_F(SessionTaskReport, OfAFewStepsNamesNoKernels) {
  EXPECT_TRUE(report_after(5, cluster_).kernels.empty());
}

TEST_F(SessionTaskReport, SaysHowAWorkerReachesItsPs) {
  const Served served;
  Cluster cluster = served.cluster();
  cluster.links.kind = "tcp";
  const TaskReport report = report_after(12, cluster);
  ASSERT_EQ(report.links.size(), 1U);
  const LinkReport& link = report.links[0];
  EXPECT_EQ(link.to, "ps:0");
  EXPECT_EQ(link.kind, "tcp");
  EXPECT_FALSE(link.encrypted);
  EXPECT_GT(link.round_trip_us.value_or(0), 0);
  EXPECT_EQ(link.step_sent, report.step_sent);
  EXPECT_EQ(link.step_received, report.step_received);
  EXPECT_NEAR(link.sent.value_or(0), report.use.sent.value_or(-1), 1e-6 * *report.use.sent);
}

TEST_F(SessionTaskReport, SaysThatTasksOfOneHostShareMemory) {
  const Served served;
  const TaskReport report = report_after(12, served.cluster());
  EXPECT_EQ(report.links.at(0).kind, "shm");
  EXPECT_EQ(report.links.at(0).round_trip_us, std::nullopt);
}

TEST_F(SessionTaskReport, SaysWhatItsInputDid) {
  InputReport input = {.stages = {{.name = "read", .records = 4, .seconds = 1}}, .records = 4};
  SessionOptions options;
  options.input = [&] { return input; };
  run_.report = folder_.path("report.json");
  {
    Session session(training(), cluster_, run_, options);
    session.step(feeding());
    input.bad = 2;
  }
  const TaskReport report = read_report(run_.report).tasks.at(0);
  ASSERT_TRUE(report.input);
  EXPECT_EQ(*report.input, input);
  EXPECT_FALSE(report_after(1, cluster_).input);
}

}  // namespace
}  // namespace paceline
