// Tests jobs whose ps is killed and started again: the job goes on from the newest checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>
#include <memory>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class LostPs : public ::testing::Test {
 protected:
  std::string out() const { return folder_.path("out"); }
  Words train(const Words& more) const {
    return join({{"train", "mlp", "--hidden", "48", "--batch", "16", "--threads", "1", "--set",
                  "print_every=10"},
                 more});
  }
  static void kill_task(const Process& launcher, const std::string& task) {
    Process killer({"pkill", "-KILL", "-P", std::to_string(launcher.pid()), "-f", "task " + task});
    ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  }
  static json read(const std::string& path) { return json::parse(std::ifstream(path)); }

  TemporaryFolder folder_;
};

TEST_F(LostPs, IsStartedAgainAndAllGoOnFromTheNewestCheckpoint) {
  Process job(paceline_words(
      train({"--ps", "2", "--workers", "2", "--device", "sim", "--sim-step-ms", "5", "--steps",
             "500", "--out", out(), "--save-every", "50", "--on-failure", "restart"})));
  ASSERT_TRUE(job.wait_for("Saving model to", seconds(60))) << job.output();
  kill_task(job, "ps:1");
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("ps:1 has ended (killed by signal 9 (Killed))"));
  for (const char* worker : {"worker:0 | ", "worker:1 | "}) {
    EXPECT_THAT(job.output(), ::testing::ContainsRegex(std::string(worker) +
                                                       ".*goes on from global "
                                                       "step [0-9]+: [0-9]+ global steps? lost"));
  }
  const json report = read(out() + "/report.json");
  EXPECT_GE(report["global_step"], 500);
  EXPECT_FALSE(report.contains("error") && !report["error"].get<std::string>().empty()) << report;
}

TEST_F(LostPs, LeavesNoTraceInTheLossesOfOneWorker) {
  const Words one = {"--ps", "1", "--workers", "1", "--steps", "6000"};
  const Finished whole = run_paceline(train(join({one, {"--report", folder_.path("whole")}})));
  ASSERT_EQ(whole.status, 0) << whole.output;
  Process job(paceline_words(train(join({one,
                                         {"--out", out(), "--save-every", "20", "--on-failure",
                                          "restart", "--set", "print_every=1"}}))));
  ASSERT_TRUE(job.wait_for("Saving model to", seconds(60))) << job.output();
  kill_task(job, "ps:0");
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("goes on from global step"));
  EXPECT_EQ(read(out() + "/report.json")["loss"]["last"],
            read(folder_.path("whole"))["loss"]["last"]);
}

TEST_F(LostPs, WithoutACheckpointEndsTheJobWhichSaysWhatWouldHaveSavedIt) {
  const std::string ps = free_address(), worker = free_address();
  const Words task = train({"--cluster", "ps=" + ps + ";worker=" + worker, "--steps", "100000"});
  const auto server = std::make_unique<Process>(paceline_words(join({task, {"--task", "ps:0"}})));
  Process chief(paceline_words(join({task, {"--task", "worker:0", "--out", out()}})));
  ASSERT_TRUE(chief.wait_for("Step: ", seconds(60))) << chief.output();
  server->signal(SIGKILL);
  EXPECT_EQ(server->wait_exit(seconds(10)), 128 + SIGKILL);
  Process again(paceline_words(join({task, {"--task", "ps:0"}})));
  EXPECT_EQ(chief.wait_exit(seconds(60)), 1) << chief.output();
  EXPECT_THAT(chief.output(), HasSubstr("was restarted: its values are lost"));
  EXPECT_THAT(chief.output(), HasSubstr("--save-every"));
}

TEST_F(LostPs, StartedAgainByHandIsWaitedFor) {
  const std::string ps = free_address(), other = free_address(), worker = free_address();
  const Words task = train({"--cluster", "ps=" + ps + "," + other + ";worker=" + worker, "--steps",
                            "400", "--device", "sim", "--sim-step-ms", "5"});
  Process stays(paceline_words(join({task, {"--task", "ps:0"}})));
  const auto server = std::make_unique<Process>(paceline_words(join({task, {"--task", "ps:1"}})));
  Process chief(
      paceline_words(join({task, {"--task", "worker:0", "--out", out(), "--save-every", "50"}})));
  ASSERT_TRUE(chief.wait_for("Saving model to", seconds(60))) << chief.output();
  server->signal(SIGKILL);
  EXPECT_EQ(server->wait_exit(seconds(10)), 128 + SIGKILL);
  ASSERT_TRUE(chief.wait_for("it may come back within", seconds(60))) << chief.output();
  Process again(paceline_words(join({task, {"--task", "ps:1"}})));
  EXPECT_EQ(chief.wait_exit(seconds(60)), 0) << chief.output();
  EXPECT_THAT(chief.output(), HasSubstr("goes back to the newest checkpoint"));
  EXPECT_THAT(chief.output(), HasSubstr("goes on from global step"));
  EXPECT_THAT(chief.output(), Not(HasSubstr("did not come back")));
  EXPECT_EQ(again.wait_exit(seconds(20)), 0) << again.output();
}

// The chief sends the worker without a folder the values to which the job goes back.
TEST_F(LostPs, IsWaitedForByAWorkerThatHasNoFolder) {
  const std::string ps = free_address();
  const Words task =
      train({"--cluster", "ps=" + ps + ";worker=" + free_address() + "," + free_address(),
             "--steps", "600", "--device", "sim", "--sim-step-ms", "5"});
  const auto server = std::make_unique<Process>(paceline_words(join({task, {"--task", "ps:0"}})));
  Process chief(
      paceline_words(join({task, {"--task", "worker:0", "--out", out(), "--save-every", "50"}})));
  Process worker(paceline_words(join({task, {"--task", "worker:1"}})));
  ASSERT_TRUE(chief.wait_for("Saving model to", seconds(60))) << chief.output();
  server->signal(SIGKILL);
  EXPECT_EQ(server->wait_exit(seconds(10)), 128 + SIGKILL);
  Process again(paceline_words(join({task, {"--task", "ps:0"}})));
  EXPECT_EQ(chief.wait_exit(seconds(60)), 0) << chief.output();
  EXPECT_EQ(worker.wait_exit(seconds(60)), 0) << worker.output();
  EXPECT_THAT(worker.output(), HasSubstr("goes on from global step"));
  EXPECT_EQ(again.wait_exit(seconds(20)), 0) << again.output();
}

TEST_F(LostPs, LeavesTheRestOfTheSeconds) {
  Process job(paceline_words(
      train({"--ps", "1", "--workers", "1", "--device", "sim", "--sim-step-ms", "5", "--seconds",
             "8", "--out", out(), "--save-every", "50", "--on-failure", "restart"})));
  ASSERT_TRUE(job.wait_for("Saving model to", seconds(60))) << job.output();
  kill_task(job, "ps:0");
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), ::testing::ContainsRegex("goes back to the newest checkpoint; "
                                                     "[0-7]\\.[0-9] of 8 s are left"));
}

}  // namespace
}  // namespace paceline::testing
