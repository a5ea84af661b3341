// Tests jobs whose workers make local steps between two exchanges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

/// The parameter is the number of ps tasks; without any, the exchanges are an all-reduce.
class LocalSteps : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Job, LocalSteps, ::testing::Values("1", "0"), [](const auto& ps) {
  return ps.param == std::string("0") ? "all_reduce" : "ps";
});

TEST_P(LocalSteps, GoOnWithoutAWorkerThatIsKilledBetweenTwoExchanges) {
  const bool has_ps = GetParam() != std::string("0");
  const Words at_once = has_ps ? Words{"--reconnect-timeout", "0"} : Words{};
  Process job(paceline_words(join({{"train",         "mlp",
                                    "--hidden",      "48",
                                    "--batch",       "16",
                                    "--threads",     "1",
                                    "--set",         "print_every=10",
                                    "--device",      "sim",
                                    "--sim-step-ms", "20",
                                    "--strategy",    "local_sgd",
                                    "--local-steps", "10",
                                    "--steps",       "200",
                                    "--ps",          GetParam(),
                                    "--workers",     "3",
                                    "--on-failure",  "continue"},
                                   at_once})));
  ASSERT_TRUE(job.wait_for("worker:1 | Step: 40 ", seconds(60))) << job.output();
  Process killer({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-f", "task worker:1"});
  ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  job.wait_exit(seconds(120));
  EXPECT_THAT(job.output(), HasSubstr("worker:0 | Step: 200 "));
  EXPECT_THAT(job.output(), HasSubstr("worker:2 | Step: 200 "));
  EXPECT_THAT(job.output(),
              HasSubstr(has_ps ? "rounds go on without worker:1: 2 workers" : "worker:1 is lost"));
}

/// Tests local steps whose changes a ps applies as they arrive.
class AsyncLocalSteps : public ::testing::Test {
 protected:
  static void kill_task(const Process& job, const std::string& task) {
    Process killer({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-f", "task " + task});
    ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  }
  static Words train(const Words& more) {
    return paceline_words(join({{"train",         "mlp",
                                 "--hidden",      "48",
                                 "--batch",       "16",
                                 "--threads",     "1",
                                 "--set",         "print_every=10",
                                 "--device",      "sim",
                                 "--sim-step-ms", "10",
                                 "--strategy",    "local_sgd",
                                 "--outer",       "async",
                                 "--local-steps", "10",
                                 "--ps",          "2",
                                 "--workers",     "3"},
                                more}));
  }
};

TEST_F(AsyncLocalSteps, GoOnWithoutAWorkerThatIsKilled) {
  Process job(train({"--steps", "800", "--on-failure", "continue"}));
  ASSERT_TRUE(job.wait_for("worker:1 | Step: ", seconds(60))) << job.output();
  kill_task(job, "worker:1");
  job.wait_exit(seconds(120));
  for (const char* worker : {"worker:0 | Step: 8", "worker:2 | Step: 8"}) {
    EXPECT_THAT(job.output(), HasSubstr(worker)) << "the steps of all together";
  }
}

TEST_F(AsyncLocalSteps, GoOnFromACheckpointWhenAPsIsKilled) {
  const TemporaryFolder folder;
  Process job(train({"--steps", "1500", "--out", folder.path("out"), "--save-every", "100",
                     "--on-failure", "restart"}));
  ASSERT_TRUE(job.wait_for("Saving model to", seconds(60))) << job.output();
  kill_task(job, "ps:1");
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("goes on from global step"));
  EXPECT_THAT(job.output(), HasSubstr("worker:0 | Step: 15"));
}

}  // namespace
}  // namespace paceline::testing
