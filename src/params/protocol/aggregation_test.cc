#include "params/protocol/aggregation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// The step limits that one event has told, by worker.
using Limits = std::map<int, std::int64_t>;

struct Bounded {
  explicit Bounded(std::int64_t staleness) : machine(staleness) {}
  Limits joined(int worker, std::int64_t next_step) {
    machine.joined(worker, next_step, out);
    return told();
  }
  Limits ended(int worker, std::int64_t step) {
    machine.ended(worker, step, out);
    return told();
  }
  Limits done(int worker) {
    machine.done(worker, out);
    return told();
  }
  Limits left(int worker) {
    machine.left(worker, out);
    return told();
  }
  Limits told() {
    Limits limits;
    for (const auto& limit : out) {
      EXPECT_TRUE(limits.emplace(limit.worker, limit.own_step).second) << "told twice";
    }
    out.clear();
    return limits;
  }
  BoundedStaleness machine;
  StepLimits out;
};

TEST(AsyncAggregation, AppliesAtOnceAndLimitsNobody) {
  AsyncAggregation machine;
  StepLimits out;
  machine.joined(0, 0, out);
  machine.joined(1, 5, out);
  EXPECT_EQ(machine.arrived(1, 5), Fate::kApply);
  machine.ended(1, 5, out);
  machine.left(0, out);
  EXPECT_THAT(out, IsEmpty());
}

TEST(BoundedStaleness, TheFastMayBeginAsManyStepsAheadOfTheSlowest) {
  Bounded it(2);
  EXPECT_THAT(it.joined(0, 0), ElementsAre(Pair(0, 2)));
  EXPECT_THAT(it.joined(1, 0), ElementsAre(Pair(1, 2)));
  EXPECT_EQ(it.machine.arrived(0, 0), Fate::kApply);
  for (int step = 0; step <= 2; ++step) {
    EXPECT_THAT(it.ended(0, step), IsEmpty()) << "worker:1 has not moved";
  }
  EXPECT_THAT(it.ended(1, 0), ElementsAre(Pair(0, 3), Pair(1, 3)));
  EXPECT_THAT(it.ended(1, 1), ElementsAre(Pair(0, 4), Pair(1, 4)));
}

TEST(BoundedStaleness, WithoutStalenessAllMakeTheSameStep) {
  Bounded it(0);
  it.joined(0, 0);
  it.joined(1, 0);
  EXPECT_THAT(it.ended(0, 0), IsEmpty());
  EXPECT_THAT(it.ended(1, 0), ElementsAre(Pair(0, 1), Pair(1, 1)));
}

TEST(BoundedStaleness, AMemberThatIsAloneIsNeverHeld) {
  Bounded it(1);
  it.joined(0, 7);
  for (int step = 7; step < 10; ++step) {
    EXPECT_THAT(it.ended(0, step), ElementsAre(Pair(0, step + 2)));
  }
}

TEST(BoundedStaleness, AJoinerCountsFromTheSlowestMembersStep) {
  Bounded it(2);
  it.joined(0, 0);
  it.joined(1, 0);
  for (int step = 0; step < 5; ++step) it.ended(0, step);
  for (int step = 0; step < 4; ++step) it.ended(1, step);
  EXPECT_THAT(it.joined(2, 100), ElementsAre(Pair(2, 102))) << "as if 100 were step 4 of worker:1";
  EXPECT_THAT(it.ended(1, 4), IsEmpty()) << "worker:2 is now the slowest";
  EXPECT_THAT(it.ended(2, 100), ElementsAre(Pair(0, 7), Pair(1, 7), Pair(2, 103)));
}

TEST(BoundedStaleness, WhoComesWhenAllHaveLeftWaitsForNobody) {
  Bounded it(1);
  it.joined(0, 0);
  for (int step = 0; step < 5; ++step) it.ended(0, step);
  EXPECT_THAT(it.left(0), IsEmpty());
  EXPECT_THAT(it.joined(1, 0), ElementsAre(Pair(1, 1)));
  EXPECT_THAT(it.joined(0, 5), ElementsAre(Pair(0, 6))) << "neither is ahead of the other";
}

TEST(BoundedStaleness, NobodyWaitsForTheSlowestOnceItHasLeft) {
  Bounded it(1);
  it.joined(0, 0);
  it.joined(1, 0);
  it.joined(2, 0);
  it.ended(0, 0);
  it.ended(0, 1);
  it.ended(1, 0);
  EXPECT_THAT(it.left(2), ElementsAre(Pair(0, 2), Pair(1, 2)));
  EXPECT_THAT(it.ended(2, 0), IsEmpty()) << "what it had on its way holds nobody";
  EXPECT_THAT(it.left(0), IsEmpty()) << "it was not the slowest";
  EXPECT_THAT(it.left(0), IsEmpty());
  EXPECT_THAT(it.left(9), IsEmpty());
  EXPECT_THAT(it.ended(9, 0), IsEmpty());
}

TEST(BoundedStaleness, WhoIsDoneWaitsForTheOthersAndNobodyForIt) {
  Bounded it(0);
  it.joined(0, 0);
  it.joined(1, 0);
  it.joined(2, 0);
  it.ended(0, 0);
  it.ended(1, 0);
  EXPECT_THAT(it.done(2), ElementsAre(Pair(0, 1), Pair(1, 1), Pair(2, 1)));
  it.ended(0, 1);
  EXPECT_THAT(it.done(0), IsEmpty());
  EXPECT_THAT(it.ended(1, 1), ElementsAre(Pair(0, 2), Pair(1, 2), Pair(2, 2)));
  EXPECT_THAT(it.done(1),
              ElementsAre(Pair(0, Aggregation::kNoLimit), Pair(1, Aggregation::kNoLimit),
                          Pair(2, Aggregation::kNoLimit)))
      << "no one is left to wait for";
  EXPECT_THAT(it.done(9), IsEmpty());
}

TEST(BoundedStaleness, JoiningAgainReplacesWhatWasKnown) {
  Bounded it(1);
  it.joined(0, 0);
  it.joined(1, 0);
  it.ended(0, 0);
  it.ended(0, 1);
  EXPECT_THAT(it.joined(1, 0), ElementsAre(Pair(0, 3), Pair(1, 1))) << "it is as far as worker:0";
  EXPECT_THAT(it.joined(1, 0), ElementsAre(Pair(1, 1))) << "a new process is told again";
}

TEST(BoundedStaleness, AStepThatWasCountedCountsNoMore) {
  Bounded it(0);
  it.joined(0, 3);
  EXPECT_THAT(it.ended(0, 1), IsEmpty());
  EXPECT_THAT(it.ended(0, 3), ElementsAre(Pair(0, 4)));
  EXPECT_THAT(it.ended(0, 3), IsEmpty());
  EXPECT_THAT(it.ended(0, 6), ElementsAre(Pair(0, 7))) << "those between count, too";
}

TEST(MakeAggregation, MakesWhatTheSpecSays) {
  EXPECT_NE(dynamic_cast<AsyncAggregation*>(make_aggregation({}).get()), nullptr);
  const auto bounded = make_aggregation({AggregationKind::kBounded, 3});
  StepLimits out;
  bounded->joined(0, 0, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].own_step, 3);
  EXPECT_EQ(AggregationSpec{}.str(), "async");
  EXPECT_EQ((AggregationSpec{AggregationKind::kBounded, 3}).str(), "ssp with staleness 3");
}

TEST(MakeAggregation, AStalenessThatMakesNoSenseIsRefused) {
  for (const std::int64_t staleness : {std::int64_t{-1}, (std::int64_t{1} << 40) + 1}) {
    try {
      make_aggregation({AggregationKind::kBounded, staleness});
      ADD_FAILURE() << staleness << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.what(),
                "a staleness of " + std::to_string(staleness) + " steps makes no sense");
    }
  }
  EXPECT_NO_THROW(make_aggregation({AggregationKind::kBounded, std::int64_t{1} << 40}));
}

}  // namespace
}  // namespace paceline
