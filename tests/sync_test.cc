// Tests synchronous rounds of real processes, in which workers are stopped, continued and killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;

class SyncProcesses : public ::testing::Test {
 protected:
  /// Starts two ps tasks and two workers, which make rounds until they are told to stop.
  void start() {
    spec_ = "ps=" + free_address() + "," + free_address() + ";worker=" + free_address() + "," +
            free_address();
    for (const char* const name : {"ps:0", "ps:1", "worker:0", "worker:1"}) {
      tasks_.push_back(start_task(name));
    }
    for (Process* worker : {&chief(), &other()}) {
      ASSERT_TRUE(worker->wait_for("Step: ", seconds(60))) << worker->output();
    }
  }
  std::unique_ptr<Process> start_task(const std::string& name) const {
    return std::make_unique<Process>(paceline_words(
        {"train", "mlp", "--hidden", "32", "--batch", "4", "--steps", "1000000", "--strategy",
         "sync", "--cluster", spec_, "--task", name, "--threads", "1"}));
  }
  Process& ps() { return *tasks_[0]; }
  Process& chief() { return *tasks_[2]; }
  Process& other() { return *tasks_[3]; }
  void expect_rounds_go_on() {
    EXPECT_TRUE(chief().wait_for_more("Step: ", seconds(60))) << chief().output();
  }

  std::string spec_;
  std::vector<std::unique_ptr<Process>> tasks_;
};

TEST_F(SyncProcesses, GoOnWithoutAWorkerThatIsStoppedAndTakeItBackWhenItIsContinued) {
  start();
  other().signal(SIGSTOP);
  EXPECT_TRUE(ps().wait_for("rounds go on without worker:1: 1 worker", seconds(60)))
      << ps().output();
  expect_rounds_go_on();
  other().signal(SIGCONT);
  EXPECT_TRUE(ps().wait_for("worker:1 is back", seconds(60))) << ps().output();
  EXPECT_TRUE(ps().wait_for("worker:1 takes part in rounds from ", seconds(60))) << ps().output();
  EXPECT_TRUE(other().wait_for_more("Step: ", seconds(60))) << other().output();
  expect_rounds_go_on();
}

TEST_F(SyncProcesses, GoOnWithoutAWorkerThatIsKilledAndTakeAnotherInItsPlace) {
  start();
  other().signal(SIGKILL);
  EXPECT_TRUE(ps().wait_for("rounds go on without worker:1: 1 worker", seconds(60)))
      << ps().output();
  expect_rounds_go_on();
  const auto restarted = start_task("worker:1");
  EXPECT_TRUE(ps().wait_for("worker:1 takes part in rounds from ", seconds(60))) << ps().output();
  EXPECT_TRUE(restarted->wait_for("Step: ", seconds(60))) << restarted->output();
  expect_rounds_go_on();
}

}  // namespace
}  // namespace paceline::testing
