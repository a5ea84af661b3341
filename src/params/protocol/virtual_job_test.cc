#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/testing/virtual_job.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

VirtualOptions with_everything(std::uint64_t seed) {
  VirtualOptions options;
  options.seed = seed;
  options.deaths = 0.3;
  options.cuts = 0.6;
  options.early_leaves = 0.1;
  options.latecomers = 0.2;
  if (seed % 2 == 1) options.aggregation = {AggregationKind::kBounded, std::int64_t(seed % 5)};
  return options;
}

TEST(VirtualJob, EndsAtItsLastStepWithEveryStepCountedOnce) {
  const VirtualResult result = run_virtual_job({});
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_GE(result.global_step, 100);
  EXPECT_LT(result.global_step, 110);
}

TEST(VirtualJob, ASeedReplaysExactly) {
  const VirtualResult first = run_virtual_job(with_everything(5));
  const VirtualResult again = run_virtual_job(with_everything(5));
  EXPECT_EQ(first.hash, again.hash);
  EXPECT_EQ(first.events, again.events);
  EXPECT_NE(first.hash, run_virtual_job(with_everything(7)).hash);
}

TEST(VirtualJob, SurvivesDeathsCutsLeaversAndLatecomers) {
  std::int64_t come_backs = 0, restarts = 0, lost = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const VirtualResult result = run_virtual_job(with_everything(seed));
    EXPECT_THAT(result.errors, IsEmpty());
    come_backs += result.come_backs;
    restarts += result.restarts;
    lost += result.lost_messages;
  }
  EXPECT_GT(come_backs, 100);
  EXPECT_GT(restarts, 50);
  EXPECT_GT(lost, 100);
}

// scripts/slow_checks runs it.
TEST(VirtualJob, DISABLED_SurvivesThemInTenThousandSeeds) {
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    ASSERT_THAT(run_virtual_job(with_everything(seed)).errors, IsEmpty());
  }
}

TEST(VirtualJob, AThousandWorkersOnEightPs) {
  VirtualOptions options = with_everything(3);
  options.workers = 1000;
  options.ps = 8;
  options.last_step = 5000;
  const VirtualResult result = run_virtual_job(options);
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_GE(result.global_step, 5000);
}

class Staleness : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Steps, Staleness, ::testing::Values(0, 1, 3, 10));

TEST_P(Staleness, NoWorkerIsFurtherAheadThanItAllows) {
  VirtualOptions options;
  options.spread = 20;
  options.last_step = 400;
  options.start_together = true;
  options.aggregation = {AggregationKind::kBounded, GetParam()};
  const VirtualResult result = run_virtual_job(options);
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.most_ahead, GetParam());
}

TEST(Staleness, WithoutABoundTheFastRunAhead) {
  VirtualOptions options;
  options.spread = 20;
  options.last_step = 400;
  options.start_together = true;
  EXPECT_GT(run_virtual_job(options).most_ahead, 20);
}

// What the checks above are worth: each finds the fault that is planted.

TEST(VirtualJob, AnEndThatIsCountedTwiceIsFound) {
  VirtualOptions options;
  options.plant = VirtualOptions::Plant::kEndTwice;
  const VirtualResult result = run_virtual_job(options);
  ASSERT_FALSE(result.errors.empty());
  EXPECT_THAT(result.errors.front(), HasSubstr("counted"));
}

TEST(VirtualJob, AWakeThatIsLostIsFound) {
  VirtualOptions options;
  options.aggregation = {AggregationKind::kBounded, 0};
  options.plant = VirtualOptions::Plant::kLostWake;
  EXPECT_FALSE(run_virtual_job(options).errors.empty());
}

TEST(VirtualJob, APieceThatIsAppliedAgainIsFound) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    VirtualOptions options = with_everything(seed);
    options.plant = VirtualOptions::Plant::kSendAllAgain;
    found += run_virtual_job(options).errors.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace paceline
