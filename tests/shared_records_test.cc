// Records that a job shares out among its tasks: each is used once, whichever of them is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr const char* kAllOnce = "600 records were used once, 0 never, 0 more often";

Words records_task(const Words& flags) {
  return join({{"env", "PACELINE_RECORD_MS=5", PACELINE_RECORDS_TASK, "--threads", "1"}, flags});
}

/// The flags of a strategy.
class SharedRecordsOf : public ::testing::TestWithParam<Words> {
 protected:
  static Words flags(const Words& more = {}) {
    return records_task(join({{"--shard", "dynamic", "--workers", "3"}, GetParam(), more}));
  }
};
INSTANTIATE_TEST_SUITE_P(Strategies, SharedRecordsOf,
                         ::testing::Values(Words{"--ps", "1", "--strategy", "async"},
                                           Words{"--ps", "2", "--strategy", "sync"},
                                           Words{"--ps", "0", "--strategy", "allreduce"}),
                         [](const auto& flags) { return flags.param.back(); });

TEST_P(SharedRecordsOf, EachIsUsedOnceByThreeWorkers) {
  Process job(flags());
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr(kAllOnce));
}

TEST_P(SharedRecordsOf, WhatAKilledWorkerHadIsGivenToTheOthers) {
  const bool has_ps = GetParam()[1] != "0";
  const Words at_once = has_ps ? Words{"--reconnect-timeout", "0"} : Words{};
  Process job(flags(join({{"--on-failure", "continue"}, at_once})));
  ASSERT_TRUE(job.wait_for("worker:1 | reads batch 4", seconds(60))) << job.output();
  Process killer({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-f", "task worker:1"});
  ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  job.wait_exit(seconds(120));
  EXPECT_THAT(job.output(), HasSubstr(kAllOnce));
}

TEST(SharedRecords, TrainingResumesWithAnotherNumberOfWorkers) {
  const TemporaryFolder folder;
  const Words saves = {"--shard", "dynamic", "--ps", "1", "--out", folder.path("run")};
  Process first(records_task(join({saves, {"--workers", "3", "--steps", "30"}})));
  EXPECT_EQ(first.wait_exit(seconds(120)), 0) << first.output();
  EXPECT_THAT(first.output(), HasSubstr("Saving model to"));
  Process second(records_task(join({saves, {"--workers", "2", "--resume"}})));
  EXPECT_EQ(second.wait_exit(seconds(120)), 0) << second.output();
  EXPECT_THAT(second.output(), HasSubstr(kAllOnce)) << first.output();
}

TEST(SharedRecords, ProgramsWithoutAPipelineRefuseToShare) {
  const Finished ended = run_paceline({"train", "mlp", "--hidden", "8", "--batch", "4", "--ps", "1",
                                       "--workers", "2", "--steps", "5", "--shard", "dynamic"});
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("--shard dynamic shares out the records of an input "
                                      "pipeline"));
}

}  // namespace
}  // namespace paceline::testing
