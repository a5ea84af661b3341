// What is left of a job when a task fails or never comes: it is named, and nothing hangs. (What a
// peer notices in each phase of a job: fault_test.cc.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(Launcher, NamesTheFirstTaskThatFailedOnceAtTheEnd) {
  Process launcher(paceline_words({"train", "mlp", "--hidden", "32", "--batch", "8", "--threads",
                                   "1", "--ps", "1", "--workers", "2"}));
  ASSERT_TRUE(launcher.wait_for("Step: ", seconds(60))) << launcher.output();
  Process killer({"pkill", "-KILL", "-P", std::to_string(launcher.pid()), "-f", "task ps:0"});
  ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  EXPECT_EQ(launcher.wait_exit(seconds(20)), 1) << launcher.output();
  EXPECT_THAT(launcher.output(), HasSubstr("ps:0"));
}

TEST(Refusal, AWorkerWhosePsNeverComesSaysSoAtItsJoinTimeout) {
  const Finished run = run_paceline({"train", "mlp", "--hidden", "32", "--cluster",
                                     "ps=" + free_address() + ";worker=" + free_address(), "--task",
                                     "worker:0", "--join-timeout", "1"},
                                    seconds(20));
  EXPECT_EQ(run.status, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("ps:0"));
}

TEST(Refusal, AnInterruptEndsTheWaitForAPs) {
  Process worker(
      paceline_words({"train", "mlp", "--hidden", "32", "--cluster",
                      "ps=" + free_address() + ";worker=" + free_address(), "--task", "worker:0"}));
  ASSERT_TRUE(worker.wait_for("waiting for ps:0", seconds(20))) << worker.output();
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait_exit(seconds(20)), 130);
  // It heeded the signal; it was not ended for not heeding it.
  EXPECT_THAT(worker.output(), HasSubstr("worker:0 was interrupted"));
}

TEST(Absence, AWorkerEndsAtTheLastStepWithoutWaitingForOneThatNeverCame) {
  const TemporaryFolder folder;
  const std::string corpus = folder.path("corpus");
  ASSERT_EQ(run_paceline({"data", "corpus", "--out", corpus, "--words", "200000"}).status, 0);
  const std::string spec =
      "ps=" + free_address() + ";worker=" + free_address() + "," + free_address();
  // A ps reads no text.
  Process server(
      paceline_words({"train", "ptb", "--steps", "30", "--cluster", spec, "--task", "ps:0"}));
  Process chief(paceline_words({"train", "ptb", "--size", "test", "--data", corpus, "--steps", "30",
                                "--cluster", spec, "--task", "worker:0"}));
  EXPECT_EQ(chief.wait_exit(seconds(60)), 0) << chief.output();
  EXPECT_EQ(server.wait_exit(seconds(20)), 0) << server.output();
}

TEST(Refusal, APsThatNobodyJoinsEndsAtItsJoinTimeout) {
  const Finished run = run_paceline(
      {"train", "mlp", "--cluster", "ps=" + free_address() + ";worker=" + free_address(), "--task",
       "ps:0", "--join-timeout", "1"},
      seconds(20));
  EXPECT_EQ(run.status, 1) << run.output;
}

TEST(Refusal, APortInUseIsNamed) {
  const std::string address = free_address(), worker = free_address();
  const std::vector<std::string> words = {
      "train",  "mlp",  "--cluster",      "ps=" + address + ";worker=" + worker,
      "--task", "ps:0", "--join-timeout", "30"};
  Process first(paceline_words(words));
  ASSERT_TRUE(first.wait_for(address, seconds(20))) << first.output();
  const Finished second = run_paceline(words, seconds(20));
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.output, HasSubstr("in use"));
}

}  // namespace
}  // namespace paceline::testing
