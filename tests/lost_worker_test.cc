// Tests jobs whose worker is killed and started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// The parameter is the number of ps tasks; without any, the workers train by all-reduce.
class LostWorker : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Job, LostWorker, ::testing::Values("1", "0"), [](const auto& ps) {
  return ps.param == std::string("0") ? "all_reduce" : "ps";
});

// The other workers began to count the time before the restarted worker did, and do not wait until
// its own time is over.
TEST_P(LostWorker, ThatIsStartedAgainEndsWhenTheTimeOfTheOthersIsOver) {
  const TemporaryFolder folder;
  const std::string report = folder.path("report.json");
  Process job(paceline_words({"train",         "mlp",
                              "--hidden",      "48",
                              "--batch",       "16",
                              "--threads",     "1",
                              "--set",         "print_every=10",
                              "--device",      "sim",
                              "--sim-step-ms", "5",
                              "--seconds",     "6",
                              "--ps",          GetParam(),
                              "--workers",     "2",
                              "--on-failure",  "restart",
                              "--report",      report}));
  ASSERT_TRUE(job.wait_for("worker:1 | Step: 100 ", seconds(60))) << job.output();
  Process killer({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-f", "task worker:1"});
  ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("worker:1 has ended (killed by signal 9 (Killed))"));
  const json tasks = json::parse(std::ifstream(report))["tasks"];
  EXPECT_GE(tasks[0]["seconds"].get<double>(), 5.9);
  const json& late = tasks[1]["seconds"];
  EXPECT_TRUE(late.is_null() || late.get<double>() < 5.9) << job.output();
}

}  // namespace
}  // namespace paceline::testing
