#include "params/protocol/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/testing/virtual_rounds.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Plant = VirtualRoundsOptions::Plant;

/// A coordinator of two shards and three workers, who have joined as incarnation 1.
struct Coordinator {
  explicit Coordinator(int k) : machine(2, 3, k) {
    for (int worker = 0; worker < 3; ++worker) EXPECT_EQ(machine.joined(worker, 1), 0);
  }
  void gives(int worker, std::uint64_t incarnation = 1) {
    for (int shard = 0; shard < 2; ++shard) whole(shard, worker, incarnation);
  }
  void whole(int shard, int worker, std::uint64_t incarnation = 1) {
    machine.whole(shard, worker, incarnation, machine.open_round(), closed);
  }
  RoundCoordinator machine;
  std::vector<RoundClosed> closed;
};

TEST(RoundCoordinator, ClosesWhenKContributionsAreWholeOnEveryShard) {
  Coordinator it(2);
  it.gives(2);
  it.whole(0, 0);
  it.whole(0, 0);
  it.whole(0, 1);
  EXPECT_THAT(it.closed, IsEmpty());
  it.whole(1, 1);
  ASSERT_EQ(it.closed.size(), 1u);
  EXPECT_EQ(it.closed[0].round, 0);
  EXPECT_THAT(it.closed[0].contributors, ElementsAre(1, 2));
  EXPECT_EQ(it.machine.open_round(), 1);
  it.machine.whole(1, 0, 1, 0, it.closed);
  it.gives(1);
  EXPECT_EQ(it.closed.size(), 1u) << "what was late for round 0 counts in no other";
}

TEST(RoundCoordinator, AWorkerThatDiesBetweenItsShardsCountsOnNone) {
  Coordinator it(3);
  it.whole(0, 0);
  it.gives(1);
  it.gives(2);
  it.machine.left(0, it.closed);
  ASSERT_EQ(it.closed.size(), 1u) << "nobody waits for it";
  EXPECT_THAT(it.closed[0].contributors, ElementsAre(1, 2));
}

TEST(RoundCoordinator, WhatWasWholeBeforeItsWorkerDiedCountsAndTheOthersAreWaitedFor) {
  Coordinator it(3);
  it.gives(0);
  it.machine.left(0, it.closed);
  it.gives(1);
  EXPECT_THAT(it.closed, IsEmpty()) << "worker:2 still gives its own";
  it.gives(2);
  ASSERT_EQ(it.closed.size(), 1u);
  EXPECT_THAT(it.closed[0].contributors, ElementsAre(0, 1, 2));
}

TEST(RoundCoordinator, ContributionsOfTwoIncarnationsAreNotMixed) {
  Coordinator it(3);
  it.gives(1);
  it.gives(2);
  it.whole(0, 0, 1);
  EXPECT_EQ(it.machine.joined(0, 2), 0);
  it.whole(1, 0, 1);
  it.whole(0, 0, 2);
  EXPECT_THAT(it.closed, IsEmpty()) << "shard 1 has only what the older process gave";
  it.whole(1, 0, 2);
  EXPECT_EQ(it.closed.size(), 1u);
}

TEST(RoundCoordinator, AConnectionThatComesBackKeepsWhatIsWhole) {
  Coordinator it(3);
  it.gives(1);
  it.whole(1, 0);
  it.machine.left(0, it.closed);
  EXPECT_EQ(it.machine.joined(0, 1), 0);
  it.gives(2);
  EXPECT_THAT(it.closed, IsEmpty());
  it.whole(0, 0);
  ASSERT_EQ(it.closed.size(), 1u);
  EXPECT_THAT(it.closed[0].contributors, ElementsAre(0, 1, 2));
}

TEST(RoundCoordinator, ANewProcessBeginsAfterTheRoundThatTheOlderHasGivenTo) {
  Coordinator it(3);
  it.gives(0);
  it.machine.left(0, it.closed);
  EXPECT_EQ(it.machine.joined(0, 2), 1);
  for (int shard = 0; shard < 2; ++shard) it.machine.whole(shard, 0, 2, 1, it.closed);
  it.gives(1);
  it.gives(2);
  ASSERT_EQ(it.closed.size(), 1u);
  EXPECT_THAT(it.closed[0].contributors, ElementsAre(0, 1, 2));
  it.gives(1);
  it.gives(2);
  ASSERT_EQ(it.closed.size(), 2u) << "what it gave while round 0 was open is remembered";
  EXPECT_THAT(it.closed[1].contributors, ElementsAre(0, 1, 2));
}

TEST(RoundCoordinator, OneContributionMayCloseTwoRounds) {
  Coordinator it(3);
  it.gives(0);
  it.machine.joined(0, 2);
  for (int shard = 0; shard < 2; ++shard) it.machine.whole(shard, 0, 2, 1, it.closed);
  it.machine.left(1, it.closed);
  EXPECT_THAT(it.closed, IsEmpty());
  it.machine.left(2, it.closed);
  EXPECT_EQ(it.closed.size(), 2u);
  EXPECT_EQ(it.machine.open_round(), 2);
}

TEST(RoundsAggregation, KeepsUntilTheRoundIsClosedAndDropsWhatIsLate) {
  RoundsAggregation shard;
  AggregationOutbox out;
  EXPECT_EQ(shard.arrived(1, 0), Fate::kKeep);
  EXPECT_EQ(shard.arrived(2, 0), Fate::kKeep);
  shard.ended(1, 0, out);
  ASSERT_EQ(out.whole.size(), 1u);
  EXPECT_EQ(out.whole[0].worker, 1);
  EXPECT_THAT(out.sums, IsEmpty());
  EXPECT_EQ(shard.arrived(3, 1), Fate::kKeep) << "other shards may be there already";
  out.clear();
  shard.closed(0, {1}, out);
  ASSERT_EQ(out.sums.size(), 1u);
  EXPECT_THAT(out.sums[0].contributors, ElementsAre(1));
  shard.closed(0, {1}, out);
  EXPECT_EQ(out.sums.size(), 1u);
  shard.ended(2, 0, out);
  EXPECT_THAT(out.whole, IsEmpty()) << "the round was closed while it arrived";
  EXPECT_EQ(shard.arrived(0, 0), Fate::kDrop);
}

VirtualRoundsOptions with_everything(std::uint64_t seed) {
  VirtualRoundsOptions options;
  options.seed = seed;
  options.shards = 2 + int(seed % 2);
  options.workers = 3 + int(seed % 4);
  options.k = 1 + int(seed / 4 % 6);  // also more than there are
  options.deaths = 0.5;
  options.restarts = 0.7;
  options.cuts = 0.3;
  options.leaves = 0.02;
  options.latecomers = 0.3;
  return options;
}

TEST(VirtualRounds, AllOfAllSumEveryContribution) {
  const VirtualRoundsResult result = run_virtual_rounds({.k = 4});
  EXPECT_THAT(result.errors, IsEmpty());
  ASSERT_GE(result.rounds.size(), 20u);
  EXPECT_EQ(result.rounds[10].size(), 4u);
}

TEST(VirtualRounds, EveryShardSumsTheSameThroughDeathsCutsLeaversAndLatecomers) {
  std::int64_t late = 0, early = 0, partial = 0, of_dead = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const VirtualRoundsResult result = run_virtual_rounds(with_everything(seed));
    EXPECT_THAT(result.errors, IsEmpty());
    late += result.late;
    early += result.early;
    partial += result.partial;
    of_dead += result.of_dead;
  }
  EXPECT_GT(late, 500);
  EXPECT_GT(early, 50);
  EXPECT_GT(partial, 50);
  EXPECT_GT(of_dead, 20);
}

TEST(VirtualRounds, ASeedReplaysExactly) {
  const VirtualRoundsResult first = run_virtual_rounds(with_everything(5));
  const VirtualRoundsResult again = run_virtual_rounds(with_everything(5));
  EXPECT_EQ(first.hash, again.hash);
  EXPECT_EQ(first.events, again.events);
  EXPECT_EQ(first.rounds, again.rounds);
  EXPECT_NE(first.hash, run_virtual_rounds(with_everything(9)).hash);
}

// Each of the checks above finds a fault that is planted.
class PlantedFault : public ::testing::TestWithParam<Plant> {};
INSTANTIATE_TEST_SUITE_P(VirtualRounds, PlantedFault,
                         ::testing::Values(Plant::kOneShardIsEnough, Plant::kSumsWhatItHas,
                                           Plant::kForgetIncarnation, Plant::kDropsEarly));

TEST_P(PlantedFault, IsFound) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    VirtualRoundsOptions options = with_everything(seed);
    options.plant = GetParam();
    if (!run_virtual_rounds(options).errors.empty()) return;
  }
  ADD_FAILURE() << "no seed has found it";
}

}  // namespace
}  // namespace paceline
