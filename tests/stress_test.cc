// A short stress test of each strategy with real processes (scripts/stress_workers): each
// contribution counts once and training goes on, no matter how workers end.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/process.h"

namespace paceline::testing {
namespace {

class Stress : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Strategies, Stress, ::testing::Values("async", "ssp", "sync", "allreduce"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(Stress, EachContributionCountsOnceWhateverHappensToWorkers) {
  Process process({std::string(PACELINE_SOURCE) + "/scripts/stress_workers", "--strategy",
                   GetParam(), "--runs", "1", "--events", "5", "--seed", "11", "--program",
                   PACELINE_COUNTING_TASK});
  EXPECT_EQ(process.wait_exit(std::chrono::seconds(280)), 0) << process.output();
}

}  // namespace
}  // namespace paceline::testing
