// Tests `paceline launch` with a command that itself starts the training program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_folder.h"
#include "launch/lab/lab.h"
#include "run/report/report.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::string kWithinAShell =
    std::string("exec ") + PACELINE_COMMAND + " train mlp --hidden 8 --steps 40 \"$@\"";

Words in_a_shell(const Words& more) {
  return join({{"--", "sh", "-c", kWithinAShell, "sh"}, more});
}

TEST(Launch, StartsACommandAsEachTaskOfAJob) {
  const TemporaryFolder folder;
  const std::string report = folder.path("report.json"), out = folder.path("out");
  const Words job = {"launch", "--ps", "1", "--workers", "2", "--tls", "on", "--report", report};
  const Finished run = run_paceline(join({job, in_a_shell({"--out", out})}), 100s);
  EXPECT_EQ(run.status, 0) << run.output;
  // The worker that ends last makes one step more, unless it has joined too late for any step.
  EXPECT_THAT(run.output, AllOf(HasSubstr("worker:1 | "), AnyOf(HasSubstr("\n41 global steps"),
                                                                HasSubstr("\n40 global steps"))));
  const Report merged = read_report(report);
  EXPECT_EQ(merged.tasks.size(), 3U);
  EXPECT_THAT(merged.tls, HasSubstr("all links (key "));
  EXPECT_TRUE(std::filesystem::exists(out + "/report.json"));
  const Finished again = run_paceline(join({job, in_a_shell({"--out", out})}), 100s);
  EXPECT_EQ(again.status, 2) << "the chief looks after the folder: " << again.output;
  EXPECT_THAT(again.output, HasSubstr("--resume"));
}

TEST(Launch, SaysWhatIsMissing) {
  const Finished nothing = run_paceline({"launch", "--ps", "1", "--workers", "2"});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.output, HasSubstr("stands behind --, as in paceline launch --ps 1"));
  const Finished no_tasks = run_paceline({"launch", "--", "true"});
  EXPECT_EQ(no_tasks.status, 2);
  EXPECT_THAT(no_tasks.output, HasSubstr("--ps M and --workers N are missing"));
}

TEST(Launch, ReachesEmulatedHostsFromALab) {
  if (const std::string why = why_no_lab(); !why.empty()) GTEST_SKIP() << why;
  const Finished run = run_paceline(
      join({{"lab", "--hosts", "3", "--ps", "1", "--workers", "2"}, in_a_shell({})}), 100s);
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("10.77.0.3"), HasSubstr("global steps")));
}

}  // namespace
}  // namespace paceline::testing
