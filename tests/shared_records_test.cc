// Tests records that a job shares out among its tasks: each is used once, no matter which task is
// killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <tuple>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr const char* kAllOnce = "600 records were used once, 0 never, 0 more often";

Words records_task(const Words& flags) {
  return join({{"env", "PACELINE_RECORD_MS=5", PACELINE_RECORDS_TASK, "--threads", "1"}, flags});
}

/// The first parameter asks for the records of a pipeline, or for the batches of a text; the second
/// has the flags of a strategy.
class SharedRecordsOf : public ::testing::TestWithParam<std::tuple<const char*, Words>> {
 protected:
  static Words flags(const Words& more = {}) {
    const auto& [of, strategy] = GetParam();
    const Words text = of == std::string("text") ? Words{"env", "PACELINE_BLOCKS=1"} : Words{};
    const Words shares = {"--shard", "dynamic", "--workers", "3"};
    return join({text, records_task(join({shares, strategy, more}))});
  }
  static bool has_ps() { return std::get<1>(GetParam())[1] != "0"; }
};
INSTANTIATE_TEST_SUITE_P(
    Strategies, SharedRecordsOf,
    ::testing::Combine(::testing::Values("pipeline", "text"),
                       ::testing::Values(Words{"--ps", "1", "--strategy", "async"},
                                         Words{"--ps", "2", "--strategy", "sync"},
                                         Words{"--ps", "0", "--strategy", "allreduce"})),
    [](const auto& test) {
      return std::get<1>(test.param).back() + "_" + std::get<0>(test.param);
    });

TEST_P(SharedRecordsOf, EachIsUsedOnceByThreeWorkers) {
  Process job(flags());
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr(kAllOnce));
}

TEST_P(SharedRecordsOf, WhatAKilledWorkerHadIsGivenToTheOthers) {
  const Words at_once = has_ps() ? Words{"--reconnect-timeout", "0"} : Words{};
  Process job(flags(join({{"--on-failure", "continue"}, at_once})));
  ASSERT_TRUE(job.wait_for("worker:1 | reads batch 4", seconds(60))) << job.output();
  Process killer({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-f", "task worker:1"});
  ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  job.wait_exit(seconds(120));
  EXPECT_THAT(job.output(), HasSubstr(kAllOnce));
}

TEST(SharedRecords, TrainingResumesWithAnotherNumberOfWorkers) {
  for (const Words& of : {Words{}, Words{"env", "PACELINE_BLOCKS=1"}}) {
    const TemporaryFolder folder;
    const Words saves = {"--shard", "dynamic", "--ps", "1", "--out", folder.path("run")};
    Process first(join({of, records_task(join({saves, {"--workers", "3", "--steps", "30"}}))}));
    EXPECT_EQ(first.wait_exit(seconds(120)), 0) << first.output();
    EXPECT_THAT(first.output(), HasSubstr("Saving model to"));
    Process second(join({of, records_task(join({saves, {"--workers", "2", "--resume"}}))}));
    EXPECT_EQ(second.wait_exit(seconds(120)), 0) << second.output();
    EXPECT_THAT(second.output(), HasSubstr(kAllOnce)) << first.output();
  }
}

// Two epochs have twice as many batches as the text, no matter which worker made each step.
TEST(SharedRecords, PtbReadsEachBatchOfItsTextOnceInAnEpoch) {
  const TemporaryFolder folder;
  ASSERT_EQ(
      run_paceline({"data", "corpus", "--out", folder.path("text"), "--words", "60000"}).status, 0);
  const Words one = {"train",   "ptb", "--size",   "test", "--data",    folder.path("text"),
                     "--batch", "10",  "--epochs", "2",    "--threads", "1"};
  const auto steps_of = [&](const Words& more) {
    const Words report = {"--report", folder.path("report.json")};
    const Finished ended = run_paceline(join({one, report, more}));
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("Epoch: 2 Valid Perplexity: "));
    return json::parse(std::ifstream(folder.path("report.json")))["global_step"].get<int>();
  };
  const int alone = steps_of({});
  EXPECT_EQ(steps_of({"--ps", "1", "--workers", "3", "--shard", "dynamic"}), alone);
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
