// Tests that a device, link or pipe that a run writes to is not replaced, and that a run whose
// output is no longer read saves like an interrupted run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// Trains in one process, or as a cluster that this machine launches.
class Streams : public ::testing::TestWithParam<Words> {
 protected:
  Streams() {
    fs::create_directory(path("tmp"));
    setenv("TMPDIR", path("tmp").c_str(), 1);
    setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);  // by default in $TMPDIR, under a test
  }
  ~Streams() override {
    unsetenv("TMPDIR");
    unsetenv("XDG_CACHE_HOME");
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  Words train(const Words& more) const {
    Words words = {"train", "mlp", "--hidden", "48", "--batch", "16", "--threads", "1"};
    words.insert(words.end(), GetParam().begin(), GetParam().end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// Runs the command in a shell with its output redirected, after `first`. The status is the
  /// command's.
  Finished shell(const Words& more, const std::string& redirections,
                 const std::string& first = "") const {
    std::string line = first + "exec";
    for (const std::string& word : paceline_words(train(more))) line += " '" + word + "'";
    Process process({"/bin/bash", "-c", line + " " + redirections});
    const int status = process.wait_exit(seconds(100));
    return {status, process.output()};
  }
  static std::string text_of(const std::string& file) {
    std::ifstream input(file);
    return {std::istreambuf_iterator<char>(input), {}};
  }
  static json report_in(const std::string& file) { return json::parse(text_of(file)); }
  bool saved() const {
    const std::string checkpoints = path("out/checkpoints");
    return fs::exists(checkpoints) && !fs::is_empty(checkpoints);
  }
  void expect_nothing_temporary() const { EXPECT_TRUE(fs::is_empty(path("tmp"))); }

  const TemporaryFolder folder_;
  const Words endless_ = {"--steps", "1000000000", "--out", path("out"), "--save-every", "100000s"};
};

TEST_P(Streams, AreWrittenToAndNeverReplaced) {
  fs::create_symlink("/dev/null", path("device"));
  fs::create_symlink("behind.json", path("link"));
  for (const std::string flag : {"--report", "--timeline"}) {
    const Finished device = run_paceline(train({"--steps", "12", flag, path("device")}));
    EXPECT_EQ(device.status, 0) << device.output;
    EXPECT_TRUE(fs::is_symlink(path("device")));
    const Finished link = run_paceline(train({"--steps", "12", flag, path("link")}));
    EXPECT_EQ(link.status, 0) << link.output;
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_TRUE(report_in(path("behind.json")).is_object());
    fs::remove(path("behind.json"));
    const Finished pipe = shell({"--steps", "12", flag}, ">(cat > '" + path("piped") + "')");
    EXPECT_EQ(pipe.status, 0) << pipe.output;
  }
  const Finished printed =
      shell({"--steps", "12", "--quiet", "--report", "/dev/stdout"}, "> " + path("printed"));
  EXPECT_EQ(printed.status, 0) << printed.output;
  EXPECT_EQ(report_in(path("printed"))["model"], "mlp");
  expect_nothing_temporary();
}

TEST_P(Streams, AFailedRunLeavesALinkAndItsErrorBehindIt) {
  fs::create_symlink("behind.json", path("link"));
  const Finished failed = run_paceline(
      train({"--steps", "12", "--report", path("link"), "--init-from", "/etc/hostname"}));
  EXPECT_EQ(failed.status, 1) << failed.output;
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_NE(report_in(path("behind.json"))["error"], "");
}

TEST_P(Streams, ThatAreClosedLeadNowhere) {
  const Finished run = shell({"--steps", "12", "--report", path("report")}, "<&- >&- 2>&-");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(report_in(path("report"))["model"], "mlp");
  const Finished full = shell({"--steps", "12", "--report", path("full")}, "> /dev/full 2>&1");
  EXPECT_EQ(full.status, 0);
  EXPECT_EQ(report_in(path("full"))["model"], "mlp");
}

TEST_P(Streams, AReaderThatLeavesEndsTheRunAndSaves) {
  const Finished run = shell(endless_, "2>&1 > >(grep -m 1 'steps/sec')");
  EXPECT_EQ(run.status, 130) << run.output;
  EXPECT_TRUE(saved());
  expect_nothing_temporary();
}

TEST_P(Streams, ATerminalThatLeavesEndsTheRunAndSaves) {
  Process process(paceline_words(train(endless_)));
  ASSERT_TRUE(process.wait_for("step", seconds(60))) << process.output();
  process.signal(SIGHUP);
  EXPECT_EQ(process.wait_exit(seconds(60)), 130) << process.output();
  EXPECT_TRUE(saved()) << process.output();
  expect_nothing_temporary();
}

TEST_P(Streams, AFileThatIsLargerThanTheLimitIsAnErrorThatNamesIt) {
  const Finished run = shell({"--steps", "12", "--out", path("out")}, "", "ulimit -f 16; ");
  EXPECT_EQ(run.status, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("ulimit -f allows this process files of 16 KB"));
}

TEST_P(Streams, AResumedRunWithNothingToDoLeavesTheReport) {
  const Words words = {"--steps", "30", "--out", path("out")};
  const Finished first = run_paceline(train(words));
  ASSERT_EQ(first.status, 0) << first.output;
  const std::string report = text_of(path("out/report.json"));
  const std::string timeline = text_of(path("out/timeline/timeline.json"));
  Words again = words;
  again.push_back("--resume");
  const Finished second = run_paceline(train(again));
  EXPECT_EQ(second.status, 0) << second.output;
  EXPECT_EQ(text_of(path("out/report.json")), report);
  EXPECT_EQ(text_of(path("out/timeline/timeline.json")), timeline);
}

TEST_P(Streams, AFolderInWhichARunWritesIsRefusedToAnother) {
  Process first(paceline_words(train(endless_)));
  ASSERT_TRUE(first.wait_for("step", seconds(60))) << first.output();
  const std::string pid = "pid " + std::to_string(first.pid()) + " on host ";
  for (const char* how : {"--overwrite", "--resume"}) {
    Words more = endless_;
    more.push_back(how);
    const Finished second = run_paceline(train(more), seconds(60));
    EXPECT_EQ(second.status, 2) << second.output;
    EXPECT_THAT(second.output, AllOf(HasSubstr("another run writes there"), HasSubstr(pid)));
  }
  first.signal(SIGINT);
  EXPECT_EQ(first.wait_exit(seconds(60)), 130) << first.output();
}

INSTANTIATE_TEST_SUITE_P(Runs, Streams,
                         ::testing::Values(Words{}, Words{"--ps", "1", "--workers", "1"}),
                         [](const auto& info) { return info.param.empty() ? "alone" : "cluster"; });

TEST(Memory, ThatIsNotThereIsForeseenAlone) {
  for (const Words& words : {Words{"train", "mlp", "--hidden", "2000000", "--steps", "1"},
                             Words{"train", "mlp", "--batch", "50000000", "--steps", "1"}}) {
    const Finished run = run_paceline(words, seconds(100));
    EXPECT_EQ(run.status, 1) << run.output;
    EXPECT_THAT(run.output,
                ::testing::ContainsRegex("need.? [0-9,]+ MB, this machine has [0-9,]+ MB"));
  }
}

}  // namespace
}  // namespace paceline::testing
