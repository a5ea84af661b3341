#include "params/protocol/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A coordinator of two shards and three workers, who have joined as incarnation 1.
struct Coordinator {
  explicit Coordinator(int replicas, LateContribution late = LateContribution::kDrop)
      : Coordinator(RoundOptions{.shards = 2, .workers = 3, .replicas = replicas, .late = late}) {}
  explicit Coordinator(const RoundOptions& options) : machine(options) {
    for (int worker = 0; worker < 3; ++worker) machine.joined(worker, 1, decided);
  }
  /// Gives the worker's next contribution, which is whole on both shards.
  void gives(int worker, std::uint64_t incarnation = 1) {
    begins(worker);
    for (int shard = 0; shard < 2; ++shard) whole(shard, worker, incarnation);
  }
  void begins(int worker) {
    ++steps[worker];
    rounds[worker] = machine.open_round();
  }
  void whole(int shard, int worker, std::uint64_t incarnation = 1) {
    const RoundContribution it{.worker = worker,
                               .incarnation = incarnation,
                               .step = steps[worker],
                               .round = rounds[worker],
                               .examples = 1};
    machine.whole(shard, it, decided);
  }
  static std::vector<int> workers(std::span<const RoundContribution> list) {
    std::vector<int> workers;
    for (const RoundContribution& it : list) workers.push_back(it.worker);
    return workers;
  }
  std::vector<int> contributors() const { return workers(decided.back().contributors); }

  RoundCoordinator machine;
  RoundCoordinator::Decisions decided;
  std::int64_t steps[3] = {}, rounds[3] = {};
};

TEST(RoundCoordinator, ClosesWhenEnoughContributionsAreWholeOnEveryShard) {
  Coordinator it(2);
  it.gives(2);
  it.begins(0);
  it.whole(0, 0);
  it.whole(0, 0);
  it.begins(1);
  it.whole(0, 1);
  EXPECT_THAT(it.decided, IsEmpty());
  it.whole(1, 1);
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_TRUE(it.decided[0].closes);
  EXPECT_EQ(it.decided[0].round, 0);
  EXPECT_THAT(it.contributors(), ElementsAre(1, 2));
  EXPECT_EQ(it.machine.open_round(), 1);
}

TEST(RoundCoordinator, DropsWhatIsWholeAfterItsRoundAndAnswersItAtOnce) {
  Coordinator it(2);
  it.begins(0);
  it.whole(0, 0);
  it.gives(1);
  it.gives(2);
  ASSERT_EQ(it.decided.size(), 1u);
  it.whole(1, 0);
  ASSERT_EQ(it.decided.size(), 2u);
  EXPECT_FALSE(it.decided[1].closes);
  EXPECT_THAT(Coordinator::workers(it.decided[1].dropped), ElementsAre(0));
  it.gives(0);
  it.gives(1);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1)) << "its next contribution is in time";
}

TEST(RoundCoordinator, FoldsWhatIsLateIntoTheOpenRound) {
  Coordinator it(2, LateContribution::kFold);
  for (int worker = 0; worker < 3; ++worker) it.gives(worker);
  it.decided.clear();
  it.begins(0);
  it.gives(1);
  it.gives(2);
  it.whole(0, 0);
  it.whole(1, 0);
  EXPECT_EQ(it.decided.size(), 1u) << "another one is to come";
  it.gives(2);
  ASSERT_EQ(it.decided.size(), 2u);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 2));
  EXPECT_EQ(it.decided[1].contributors[0].round, it.decided[1].round - 1)
      << "one round before the one it counts in";
}

TEST(RoundCoordinator, AWorkerThatDiesBetweenItsShardsCountsOnNone) {
  Coordinator it(3);
  it.begins(0);
  it.whole(0, 0);
  it.gives(1);
  it.gives(2);
  it.machine.left(0, it.decided);
  ASSERT_EQ(it.decided.size(), 1u) << "nobody waits for it";
  EXPECT_THAT(it.contributors(), ElementsAre(1, 2));
}

TEST(RoundCoordinator, WhatWasWholeBeforeItsWorkerDiedCountsAndTheOthersAreWaitedFor) {
  Coordinator it(3);
  it.gives(0);
  it.machine.left(0, it.decided);
  it.gives(1);
  EXPECT_THAT(it.decided, IsEmpty()) << "worker:2 still gives its own";
  it.gives(2);
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1, 2));
}

TEST(RoundCoordinator, ContributionsOfTwoIncarnationsAreNotMixed) {
  Coordinator it(3);
  it.gives(1);
  it.gives(2);
  it.begins(0);
  it.whole(0, 0, 1);
  it.machine.joined(0, 2, it.decided);
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_THAT(Coordinator::workers(it.decided[0].displaced), ElementsAre(0));
  it.whole(1, 0, 1);
  it.whole(0, 0, 2);
  EXPECT_EQ(it.decided.back().displaced.size(), 1u) << "shard 1 has what the older process gave";
  it.whole(1, 0, 2);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1, 2));
}

TEST(RoundCoordinator, ForgetsWhatWasMadeFromValuesOfBeforeAPsWasLost) {
  Coordinator it(3);
  it.begins(0);
  it.rounds[0] = 4;
  it.whole(1, 0);
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_EQ(it.decided[0].displaced.size(), 1u);
}

TEST(RoundCoordinator, AConnectionThatComesBackKeepsWhatIsWhole) {
  Coordinator it(3);
  it.gives(1);
  it.begins(0);
  it.whole(1, 0);
  it.machine.left(0, it.decided);
  it.machine.joined(0, 1, it.decided);
  it.gives(2);
  EXPECT_THAT(it.decided, IsEmpty());
  it.whole(0, 0);
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1, 2));
}

TEST(RoundCoordinator, WaitsForWorkersThatHaveNotComeUntilItIsToldNotTo) {
  RoundCoordinator machine({.shards = 1, .workers = 2});
  RoundCoordinator::Decisions decided;
  machine.joined(0, 1, decided);
  machine.whole(0, {.worker = 0, .incarnation = 1, .examples = 1}, decided);
  EXPECT_THAT(decided, IsEmpty());
  EXPECT_THAT(machine.absent(), ElementsAre(1));
  machine.stop_waiting(decided);
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_THAT(Coordinator::workers(decided[0].contributors), ElementsAre(0));
}

TEST(RoundCoordinator, ALateJoinerHoldsNobodyUpAndBeginsWithARound) {
  Coordinator it(3);
  for (int worker = 0; worker < 3; ++worker) it.gives(worker);
  it.machine.left(2, it.decided);
  it.machine.joined(2, 2, it.decided);
  it.gives(0);
  it.gives(1);
  ASSERT_EQ(it.decided.size(), 2u) << "nobody waits for its first contribution";
  it.gives(0);
  it.gives(2, 2);
  ASSERT_EQ(it.decided.size(), 2u) << "which is answered with the round";
  it.gives(1);
  ASSERT_EQ(it.decided.size(), 4u);
  EXPECT_THAT(Coordinator::workers(it.decided[2].contributors), ElementsAre(0, 1));
  EXPECT_FALSE(it.decided[3].closes);
  EXPECT_THAT(Coordinator::workers(it.decided[3].dropped), ElementsAre(2)) << "and counts nowhere";
  it.gives(0);
  it.gives(1);
  EXPECT_EQ(it.decided.size(), 4u) << "now it is waited for";
  it.gives(2, 2);
  ASSERT_EQ(it.decided.size(), 5u);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1, 2)) << "it has the values of one round now";
}

TEST(RoundCoordinator, ALateJoinerIsAnsweredAtOnceWhereNobodyElseIs) {
  Coordinator it(3);
  for (int worker = 0; worker < 3; ++worker) it.gives(worker);
  it.machine.left(2, it.decided);
  it.machine.left(1, it.decided);
  it.machine.joined(1, 2, it.decided);
  it.gives(1, 2);
  EXPECT_EQ(it.decided.size(), 1u) << "worker:0 is to close the round";
  it.machine.left(0, it.decided);
  ASSERT_EQ(it.decided.size(), 2u);
  EXPECT_THAT(Coordinator::workers(it.decided[1].dropped), ElementsAre(1));
  it.machine.joined(0, 2, it.decided);
  it.gives(1, 2);
  ASSERT_EQ(it.decided.size(), 3u);
  EXPECT_THAT(it.contributors(), ElementsAre(1));
  it.machine.left(1, it.decided);
  it.gives(0, 2);
  ASSERT_EQ(it.decided.size(), 4u);
  EXPECT_THAT(Coordinator::workers(it.decided[3].dropped), ElementsAre(0));
}

TEST(RoundCoordinator, AContributionWithNanCountsNowhereAndClosesTheRound) {
  Coordinator it(3);
  it.gives(0);
  it.gives(2);
  it.begins(1);
  it.whole(1, 1);
  it.machine.whole(0, {.worker = 1, .incarnation = 1, .step = 1, .examples = 1}, it.decided, true);
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 2));
  EXPECT_THAT(Coordinator::workers(it.decided[0].dropped), ElementsAre(1));
  it.gives(1);
  it.gives(0);
  it.gives(2);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1, 2));
}

TEST(RoundCoordinator, ARoundOfNothingButNanIsClosed) {
  RoundCoordinator machine({.shards = 1, .workers = 1});
  RoundCoordinator::Decisions decided;
  machine.joined(0, 1, decided);
  machine.whole(0, {.worker = 0, .incarnation = 1, .examples = 1}, decided, true);
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_TRUE(decided[0].closes);
  EXPECT_THAT(decided[0].contributors, IsEmpty());
  EXPECT_EQ(machine.open_round(), 1);
}

TEST(RoundCoordinator, NeverHasMoreMembersThanItCounts) {
  Coordinator it(5);
  it.machine.left(1, it.decided);
  EXPECT_EQ(it.machine.members(), 2);
  it.gives(0);
  it.gives(2);
  EXPECT_EQ(it.decided.size(), 1u) << "more replicas than there are members";
}

TEST(RoundNorms, ScalesByTheNormOfAllShards) {
  RoundNorms norms(2);
  norms.expect(3, 1.0f);
  EXPECT_FALSE(norms.add(1, {.round = 3, .sum = 9}));
  EXPECT_FALSE(norms.add(1, {.round = 4, .sum = 9})) << "nobody expects round 4";
  const auto scale = norms.add(0, {.round = 3, .sum = 16});
  ASSERT_TRUE(scale);
  EXPECT_EQ(scale->round, 3);
  EXPECT_FLOAT_EQ(scale->scale, 0.2f);
}

TEST(RoundNorms, LeavesAShortMeanAsItIs) {
  RoundNorms norms(1);
  norms.expect(0, 5.0f);
  EXPECT_EQ(norms.add(0, {.round = 0, .sum = 24})->scale, 1.0f);
}

TEST(RoundsAggregation, KeepsEveryContribution) {
  const auto rounds = make_aggregation({.kind = AggregationKind::kRounds});
  EXPECT_EQ(rounds->arrived(1, 7), Fate::kKeep);
}

// A coordinator of rounds that the workers commit.
struct CommittedCoordinator : Coordinator {
  CommittedCoordinator()
      : Coordinator(RoundOptions{.shards = 2, .workers = 3, .workers_commit = true}) {}
  void commit(int teller, std::int64_t round, const std::vector<std::int32_t>& contributors) {
    machine.commit(teller, round, contributors, decided);
  }
};

TEST(CommittedRounds, OnlyACommitClosesARound) {
  CommittedCoordinator it;
  for (int worker = 0; worker < 3; ++worker) it.gives(worker);
  it.machine.left(2, it.decided);
  EXPECT_THAT(it.decided, IsEmpty());
  it.commit(1, 0, {0, 1});
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_TRUE(it.decided[0].closes);
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1));
  EXPECT_THAT(Coordinator::workers(it.decided[0].dropped), ElementsAre(2));
  it.commit(0, 0, {0, 1});
  EXPECT_EQ(it.decided.size(), 1u) << "the second word about it changes nothing";
  EXPECT_EQ(it.machine.open_round(), 1);
}

TEST(CommittedRounds, WhoeverContributedToTheLastOneTrainsUntilItsProcessIsLost) {
  CommittedCoordinator it;
  for (int worker = 0; worker < 3; ++worker) it.gives(worker);
  EXPECT_FALSE(it.machine.trains(1));
  it.commit(0, 0, {0, 1});
  EXPECT_TRUE(it.machine.trains(1));
  EXPECT_FALSE(it.machine.trains(2)) << "it was dropped";
  it.machine.left(0, it.decided);
  EXPECT_FALSE(it.machine.trains(0));
  it.machine.joined(1, 77, it.decided);
  EXPECT_FALSE(it.machine.trains(1)) << "another process of it does not";
}

TEST(CommittedRounds, AContributionThatIsNotWholeCannotBeCommitted) {
  CommittedCoordinator it;
  it.gives(0);
  it.begins(1);
  it.whole(0, 1);
  EXPECT_THROW(it.commit(0, 0, {0, 1}), Error);
  EXPECT_THROW(it.commit(0, 1, {0}), Error);
  it.whole(1, 1);
  it.commit(0, 0, {0, 1});
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1));
}

// The first commit counts. A worker of the second group has committed, and so applied, another sum,
// and must not go on.
TEST(CommittedRounds, TwoGroupsCannotBothCloseARound) {
  CommittedCoordinator it;
  for (int worker = 0; worker < 3; ++worker) it.gives(worker);
  it.commit(0, 0, {0, 1});
  it.commit(2, 0, {2});
  EXPECT_EQ(it.decided.size(), 1u) << "worker 2 knows by its dropped contribution";
}

// Worker 0 has told ps 0 its commit, and was lost before the other workers heard of the commit.
// They have made the step again without worker 0, and so have other values.
TEST(CommittedRounds, WorkersThatCommittedARoundWithOthersThanItHasDoNotTrain) {
  CommittedCoordinator it;
  for (int worker = 0; worker < 3; ++worker) it.gives(worker);
  it.commit(0, 0, {0, 1, 2});
  EXPECT_TRUE(it.machine.trains(2));
  it.commit(1, 0, {1, 2});
  EXPECT_EQ(it.decided.size(), 1u) << "the round stays as it is";
  EXPECT_TRUE(it.machine.trains(0));
  EXPECT_FALSE(it.machine.trains(1));
  EXPECT_FALSE(it.machine.trains(2));
}

TEST(CommittedRounds, AWithdrawnContributionIsDroppedOnceItIsWhole) {
  CommittedCoordinator it;
  it.gives(0);
  it.machine.withdraw(0, 1, it.steps[0], it.decided);
  ASSERT_EQ(it.decided.size(), 1u);
  EXPECT_FALSE(it.decided[0].closes);
  EXPECT_THAT(Coordinator::workers(it.decided[0].dropped), ElementsAre(0));
  it.begins(1);
  it.whole(0, 1);
  it.machine.withdraw(1, 1, it.steps[1], it.decided);
  EXPECT_EQ(it.decided.size(), 1u);
  it.whole(1, 1);
  ASSERT_EQ(it.decided.size(), 2u);
  EXPECT_THAT(Coordinator::workers(it.decided[1].dropped), ElementsAre(1));
  EXPECT_EQ(it.machine.open_round(), 0);
}

// The workers may already have committed the contribution, even if its worker was restarted
// meanwhile.
TEST(CommittedRounds, AWholeContributionStaysUntilItsRoundIsClosed) {
  CommittedCoordinator it;
  it.gives(0);
  it.gives(1);
  it.machine.joined(0, 2, it.decided);
  EXPECT_THAT(it.decided, IsEmpty());
  it.commit(1, 0, {0, 1});
  EXPECT_THAT(it.contributors(), ElementsAre(0, 1));
  it.gives(0, 2);
  it.commit(0, 1, {0});
  EXPECT_EQ(it.decided.back().contributors[0].incarnation, 2u);
}

}  // namespace
}  // namespace paceline
