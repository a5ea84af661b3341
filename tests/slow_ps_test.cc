// Tests a ps that stands still for a while, or is slow. The job goes on when the ps does, and
// neither the workers nor the other ps pile up data for it.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/memory_of.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;

constexpr seconds kForThePs{60};
constexpr double kMostGrowthMb = 64;

class SlowPs : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    spec_ = "ps=" + free_address() + "," + free_address() + ";worker=" + free_address() + "," +
            free_address();
    for (const char* const name : {"ps:0", "ps:1", "worker:0", "worker:1"}) {
      tasks_.push_back(std::make_unique<Process>(paceline_words(
          {"train", "mlp", "--hidden", "256", "--batch", "4", "--steps", "100000000", "--strategy",
           GetParam(), "--cluster", spec_, "--task", name, "--threads", "1", "--link", "tcp"})));
    }
    for (Process* worker : {tasks_[2].get(), tasks_[3].get()}) {
      ASSERT_TRUE(worker->wait_for("Step: ", kForThePs)) << worker->output();
    }
  }
  Process& slow() { return *tasks_[1]; }
  /// Returns the memory of the tasks that the slow ps keeps waiting.
  std::vector<double> memory_of_others() const {
    return {memory_mb(tasks_[0]->pid()), memory_mb(tasks_[2]->pid()), memory_mb(tasks_[3]->pid())};
  }
  void expect_bounded(const std::vector<double>& before) {
    const std::vector<double> after = memory_of_others();
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_LT(after[i], before[i] + kMostGrowthMb) << i;
    }
  }
  void expect_steps() {
    for (Process* worker : {tasks_[2].get(), tasks_[3].get()}) {
      ASSERT_TRUE(worker->wait_for_more("Step: ", kForThePs)) << worker->output();
    }
  }

  std::string spec_;
  std::vector<std::unique_ptr<Process>> tasks_;
};

INSTANTIATE_TEST_SUITE_P(Strategies, SlowPs, ::testing::Values("async", "ssp", "sync"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(SlowPs, ThatStandsStillForAWhileHoldsTheJobUpAndNoMore) {
  const std::vector<double> before = memory_of_others();
  slow().signal(SIGSTOP);
  EXPECT_FALSE(tasks_[0]->wait_for_more("no such line", seconds(3))) << "a while passes";
  expect_bounded(before);
  slow().signal(SIGCONT);
  expect_steps();
}

TEST_P(SlowPs, ThatRunsAFifthOfTheTimeSlowsTheJobDownAndNoMore) {
  const std::vector<double> before = memory_of_others();
  Process brake({"/bin/sh", "-c",
                 "while kill -STOP $0; do sleep 0.08; kill -CONT $0; sleep 0.02; done",
                 std::to_string(slow().pid())});
  expect_steps();
  expect_steps();
  expect_bounded(before);
  brake.signal(SIGKILL);
  slow().signal(SIGCONT);
  expect_steps();
}

}  // namespace
}  // namespace paceline::testing
