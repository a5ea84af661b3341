// Tests a user's own program that must not train: with --dry-run, with --predict, and in the pass
// of --strategy auto that only compares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Runs a program that trains, and then prints its steps and its values.
Finished run_own(const Words& flags) {
  Process process(join({{PACELINE_COUNTING_TASK}, flags}));
  const int status = process.wait_exit(std::chrono::seconds(120));
  return {status, process.output()};
}

TEST(OwnDryRun, GoesOnBehindASessionThatHasEnded) {
  const Finished run = run_own({"--ps", "1", "--workers", "2", "--dry-run"});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("Dry run of model: nothing is started.\n1 ps + 2 workers"),
                    HasSubstr("A step of one worker:\n"), HasSubstr("\nended at 0\n"),
                    HasSubstr("large counts -0 to -0\n")));
  EXPECT_THAT(run.output, Not(HasSubstr("at 0\nat")));
}

TEST(OwnDryRun, OfAPredictionIsTheTableOfWays) {
  const Finished run = run_own({"--device", "sim", "--sim-step-ms", "5", "--predict"});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("\none process  "), HasSubstr("\nThe fastest: "),
                                HasSubstr("\nended at 0\n")));
}

TEST(OwnDryRun, TheFastestWayIsChosenInAFirstPassAndTrained) {
  const Finished run = run_own({"--workers", "2", "--strategy", "auto", "--device", "sim",
                                "--sim-step-ms", "5", "--steps", "20"});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output,
              AllOf(ContainsRegex("--strategy auto: of [0-9]+ ways takes --ps [0-9] --workers 2"),
                    StartsWith("ended at 0\n"), HasSubstr("worker:0 | ended at 2")));
}

}  // namespace
}  // namespace paceline::testing
