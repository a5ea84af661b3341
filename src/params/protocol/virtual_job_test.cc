#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

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
  options.losses = 0.001;
  options.repeats = 0.1;
  if (seed % 2 == 0) options.ps_deaths = 0.3;
  options.clipped = seed % 3 == 0;
  if (seed % 4 == 0) options.bytes_per_s = 100e6;
  if (seed % 2 == 1) options.aggregation = {AggregationKind::kBounded, std::int64_t(seed % 5)};
  return options;
}

/// Options for rounds of all workers or of fewer, with every fault.
VirtualOptions rounds_with_everything(std::uint64_t seed) {
  VirtualOptions options = with_everything(seed);
  options.ps = 1 + int(seed % 3);
  options.workers = 3 + int(seed % 4);
  options.aggregation = {.kind = AggregationKind::kRounds,
                         .replicas = int(seed % 5),
                         .late = seed % 7 < 3 ? LateContribution::kFold : LateContribution::kDrop};
  return options;
}

/// Runs a job for each of 200 seeds, and expects no error in any of them. Returns the sum of the
/// results.
VirtualResult of_200_seeds(VirtualOptions (*options)(std::uint64_t seed)) {
  VirtualResult all;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const VirtualResult result = run_virtual_job(options(seed));
    EXPECT_THAT(result.errors, IsEmpty());
    all.come_backs += result.come_backs;
    all.restarts += result.restarts;
    all.ps_restarts += result.ps_restarts;
    all.restores += result.restores;
    all.lost_messages += result.lost_messages;
    all.repeated_steps += result.repeated_steps;
    all.waiting_replies += result.waiting_replies;
    all.dropped += result.dropped;
    all.folded += result.folded;
  }
  return all;
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

TEST(VirtualJob, SurvivesDeathsCutsLossesRepeatsLeaversAndLatecomers) {
  const VirtualResult all = of_200_seeds(with_everything);
  EXPECT_GT(all.come_backs, 500);
  EXPECT_GT(all.restarts, 50);
  EXPECT_GT(all.ps_restarts, 30);
  EXPECT_GT(all.restores, 10);
  EXPECT_GT(all.lost_messages, 500);
  EXPECT_GT(all.repeated_steps, 500);
  EXPECT_GT(all.waiting_replies, 500);
}

TEST(VirtualRounds, AreClosedOnceEachAndSumAllContributions) {
  VirtualOptions options;
  options.aggregation.kind = AggregationKind::kRounds;
  const VirtualResult result = run_virtual_job(options);
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.global_step, 100);
  EXPECT_EQ(result.rounds, 100);
  EXPECT_EQ(result.dropped, 0);
}

TEST(VirtualRounds, SurviveDeathsCutsLossesLeaversLatecomersAndLostPsTasks) {
  const VirtualResult all = of_200_seeds(rounds_with_everything);
  EXPECT_GT(all.come_backs, 500);
  EXPECT_GT(all.restarts, 50);
  EXPECT_GT(all.restores, 10);
  EXPECT_GT(all.lost_messages, 500);
  EXPECT_GT(all.dropped, 500);
  EXPECT_GT(all.folded, 500);
}

// scripts/slow_checks runs these disabled tests.
TEST(VirtualJob, DISABLED_SurvivesThemInTenThousandSeeds) {
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    ASSERT_THAT(run_virtual_job(with_everything(seed)).errors, IsEmpty());
  }
}

TEST(VirtualRounds, DISABLED_SurviveThemInTenThousandSeeds) {
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    VirtualOptions options = rounds_with_everything(seed);
    if (seed % 1000 == 0) {
      options.workers = 1000;
      options.last_step = 20;
    }
    ASSERT_THAT(run_virtual_job(options).errors, IsEmpty());
  }
}

TEST(VirtualRounds, OfAThousandWorkersOnEightPs) {
  VirtualOptions options = rounds_with_everything(5);
  options.workers = 1000;
  options.ps = 8;
  options.last_step = 5;
  options.aggregation.replicas = 900;
  const VirtualResult result = run_virtual_job(options);
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_GE(result.global_step, 5);
}

TEST(VirtualJob, AThousandWorkersOnEightPs) {
  VirtualOptions options = with_everything(3);
  options.workers = 1000;
  options.ps = 8;
  options.last_step = 3000;
  const VirtualResult result = run_virtual_job(options);
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_GE(result.global_step, 3000);
}

class StalenessBound : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Steps, StalenessBound, ::testing::Values(0, 1, 3, 10));

TEST_P(StalenessBound, NoWorkerIsFurtherAheadThanItAllows) {
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

// Each fault that is planted here must be found by the checks of run_virtual_job.

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

/// Faults that show only when something else happens to a worker.
class VirtualJobFault
    : public ::testing::TestWithParam<std::pair<VirtualOptions::Plant, const char*>> {};
INSTANTIATE_TEST_SUITE_P(
    Faults, VirtualJobFault,
    ::testing::Values(std::pair(VirtualOptions::Plant::kSendAllAgain, "declared twice"),
                      std::pair(VirtualOptions::Plant::kLossGoesOn, "refuses"),
                      std::pair(VirtualOptions::Plant::kForgetLost, "has not ended"),
                      std::pair(VirtualOptions::Plant::kRepeatsCount, "counts twice"),
                      std::pair(VirtualOptions::Plant::kRepliesInOrder, "needed first"),
                      std::pair(VirtualOptions::Plant::kNoWindow, "bytes of replies"),
                      std::pair(VirtualOptions::Plant::kValuesStay, "has not ended")));

class VirtualRoundsFault
    : public ::testing::TestWithParam<std::pair<VirtualOptions::Plant, const char*>> {};
INSTANTIATE_TEST_SUITE_P(
    Faults, VirtualRoundsFault,
    ::testing::Values(
        std::pair(VirtualOptions::Plant::kOneShardIsEnough, "has not what is to be summed"),
        std::pair(VirtualOptions::Plant::kToldAndNotApplied, "where it does not"),
        std::pair(VirtualOptions::Plant::kOneSumsWhatItLikes, "sums other contributions"),
        std::pair(VirtualOptions::Plant::kForgetLost, "has not ended")));

TEST_P(VirtualRoundsFault, IsFound) {
  std::string found;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    VirtualOptions options = rounds_with_everything(seed);
    options.plant = GetParam().first;
    for (const std::string& error : run_virtual_job(options).errors) found += error + "\n";
  }
  EXPECT_THAT(found, HasSubstr(GetParam().second));
}

TEST_P(VirtualJobFault, IsFound) {
  std::string found;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    VirtualOptions options = with_everything(seed);
    options.plant = GetParam().first;
    for (const std::string& error : run_virtual_job(options).errors) found += error + "\n";
  }
  EXPECT_THAT(found, HasSubstr(GetParam().second));
}

constexpr std::int64_t kRecords = 2000;

VirtualOptions with_records(VirtualOptions options) {
  options.records = kRecords;
  options.last_step = 1'000'000;
  options.early_leaves = 0;
  return options;
}

TEST(VirtualJob, EveryRecordOfAnEpochIsUsedOnce) {
  const VirtualResult result = run_virtual_job(with_records({.workers = 5, .spread = 8}));
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.records_used, kRecords);
  EXPECT_EQ(result.records_given_again, 0);
  const VirtualResult rounds = run_virtual_job(
      with_records({.aggregation = {.kind = AggregationKind::kRounds, .replicas = 3}}));
  EXPECT_THAT(rounds.errors, IsEmpty());
  EXPECT_GT(rounds.records_given_again, 0) << "those of contributions that were too late";
}

TEST(VirtualJob, RecordsAreUsedOnceWhateverHappens) {
  for (const auto options : {with_everything, rounds_with_everything}) {
    std::int64_t given_again = 0, whole = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const VirtualResult result = run_virtual_job(with_records(options(seed)));
      EXPECT_THAT(result.errors, IsEmpty()) << "seed " << seed;
      given_again += result.records_given_again;
      whole += result.records_used == kRecords ? 1 : 0;
    }
    EXPECT_GT(given_again, 1000);
    EXPECT_GT(whole, 100) << "epochs; the others ended when their last worker was lost";
  }
}

TEST(VirtualJob, FindsAWorkerThatReadsMoreThanItSays) {
  VirtualOptions options = with_records({});
  options.plant = VirtualOptions::Plant::kReadsTooMuch;
  EXPECT_THAT(run_virtual_job(options).errors, ::testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace paceline
