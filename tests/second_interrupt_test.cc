// Tests that the first Ctrl-C saves, however long that takes, and that a second one ends all tasks
// at once, without leaving a process or half a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "tests/held_saves.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

/// Returns the number of processes that have `text` in their command line.
int processes_with(const std::string& text) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string words(std::istreambuf_iterator<char>(file), {});
    if (words.find(text) != std::string::npos) ++count;
  }
  return count;
}

/// Trains in one process, or as a cluster that this machine launches.
class TwoInterrupts : public ::testing::TestWithParam<Words> {
 protected:
  Words train(const Words& more) const {
    Words words = {"train", "mlp",       "--hidden", "48",    "--batch",
                   "16",    "--threads", "1",        "--out", out()};
    words.insert(words.end(), GetParam().begin(), GetParam().end());
    words.insert(words.end(), more.begin(), more.end());
    return paceline_words(words);
  }
  std::string out() const { return folder_.path("out"); }
  /// Returns the step of the checkpoint that was announced last.
  static std::string announced(const std::string& output) {
    const std::regex pattern("Saving model to \\S*/step-(\\d+) ");
    std::string last;
    for (std::sregex_iterator found(output.begin(), output.end(), pattern), none; found != none;
         ++found) {
      last = (*found)[1];
    }
    return last;
  }
  /// Interrupts the training, and holds its save until let_go().
  void interrupt_and_hold() {
    ASSERT_TRUE(training_.wait_for("Saving model to ", seconds(60))) << training_.output();
    held_.hold();
    training_.signal(SIGINT);
    ASSERT_TRUE(training_.wait_for(HeldSaves::kSaid, seconds(60))) << training_.output();
  }
  void expect_goes_on_from(const std::string& step) const {
    Process resumed(train({"--steps", "1", "--resume"}));
    EXPECT_EQ(resumed.wait_exit(seconds(60)), 0) << resumed.output();
    EXPECT_THAT(resumed.output(), HasSubstr("Goes on from step " + step + ":"));
  }

  const TemporaryFolder folder_;
  HeldSaves held_{folder_.path("pipe"), "/index.json"};
  Process training_{held_.of(train({"--steps", "1000000000", "--save-every", "40"}))};
};

TEST_P(TwoInterrupts, TheFirstWaitsForItsSave) {
  interrupt_and_hold();
  held_.let_go();
  EXPECT_EQ(training_.wait_exit(seconds(60)), 130) << training_.output();
  const std::string step = announced(training_.output());
  EXPECT_THAT(training_.output(), HasSubstr("to go on from step " + step + ": "));
  expect_goes_on_from(step);
}

// timeout(1), for example, sends two signals at once.
TEST_P(TwoInterrupts, SignalsOfOneMomentAreTheFirst) {
  ASSERT_TRUE(training_.wait_for("Saving model to ", seconds(60))) << training_.output();
  training_.signal(SIGINT);
  training_.signal(SIGTERM);
  EXPECT_EQ(training_.wait_exit(seconds(60)), 130) << training_.output();
  EXPECT_THAT(training_.output(),
              HasSubstr("to go on from step " + announced(training_.output()) + ": "));
}

TEST_P(TwoInterrupts, TheSecondEndsAllTasksAtOnce) {
  interrupt_and_hold();
  int status = -1;
  // A second signal that comes too soon counts as a part of the first.
  for (int i = 0; i < 60 && status < 0; ++i) {
    training_.signal(SIGINT);
    status = training_.wait_exit(seconds(1));
  }
  EXPECT_EQ(status, 130) << training_.output();
  EXPECT_EQ(processes_with(out()), 0);
  expect_goes_on_from(announced(training_.output()));
}

INSTANTIATE_TEST_SUITE_P(Clusters, TwoInterrupts,
                         ::testing::Values(Words{}, Words{"--ps", "1", "--workers", "1"}),
                         [](const auto& info) {
                           return std::string(info.param.empty() ? "alone" : "launched");
                         });

}  // namespace
}  // namespace paceline::testing
