#include "params/protocol/collective_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kUnit = GroupRecordSharing::kUnit, kFar = 1'000'000;
using Held = std::vector<std::vector<RecordRange>>;

TEST(GroupRecordSharing, MembersTakeUnitsByTurns) {
  GroupRecordSharing first, second;
  EXPECT_EQ(first.take(kFar).size(), 0);
  first.deal({}, Held(2), 0);
  second.deal({}, Held(2), 1);
  EXPECT_EQ(first.take(kFar), (RecordRange{0, kUnit}));
  EXPECT_EQ(second.take(kFar, 2), (RecordRange{kUnit, kUnit + 2}));
  EXPECT_EQ(second.take(kFar), (RecordRange{kUnit + 2, 2 * kUnit}));
  EXPECT_EQ(first.take(kFar), (RecordRange{2 * kUnit, 3 * kUnit}));
}

TEST(GroupRecordSharing, AStepReadsWhatWasTakenAndNotUsed) {
  GroupRecordSharing deal;
  deal.deal({}, Held(2), 0);
  deal.begin();
  for (int i = 0; i < 3; ++i) deal.take(kFar);
  const auto step = deal.reads(40);
  EXPECT_THAT(step, ElementsAre(RecordRange{0, kUnit}, RecordRange{2 * kUnit, 2 * kUnit + 8}));
  deal.use_own(step);
  deal.use(std::vector<RecordRange>{{kUnit, 2 * kUnit}});
  EXPECT_EQ(deal.unused().ranges().front().first, 2 * kUnit + 8);
  EXPECT_THAT(deal.reads(48), ElementsAre(RecordRange{2 * kUnit + 8, 2 * kUnit + 16}));
}

TEST(GroupRecordSharing, TheNextEpochDealsWhatNobodyHolds) {
  GroupRecordSharing deal;
  deal.deal({}, Held(3), 0);
  deal.take(kFar);
  deal.freeze();
  EXPECT_EQ(deal.take(kFar).size(), 0);
  // The third member is lost, with the records that it held. The second member still holds its
  // first unit.
  deal.deal({}, {deal.held(), {{kUnit, 2 * kUnit}}}, 0);
  EXPECT_FALSE(deal.revoked());
  EXPECT_EQ(deal.take(kFar), (RecordRange{2 * kUnit, 3 * kUnit}));
}

TEST(GroupRecordSharing, WhatOthersDoNotKnowToBeHeldIsRevoked) {
  GroupRecordSharing deal;
  deal.deal({}, Held(2), 0);
  deal.take(kFar);
  deal.freeze();
  deal.deal({}, Held(2), 1);
  EXPECT_TRUE(deal.revoked());
  EXPECT_EQ(deal.take(kFar).size(), 0);
  deal.begin();
  EXPECT_EQ(deal.take(kFar), (RecordRange{kUnit, 2 * kUnit}));
}

TEST(GroupRecordSharing, IsOverAtTheLimit) {
  GroupRecordSharing deal;
  deal.deal({}, Held(2), 1);
  EXPECT_FALSE(deal.over(kUnit + 5));
  EXPECT_EQ(deal.take(kUnit + 5), (RecordRange{kUnit, kUnit + 5}));
  EXPECT_TRUE(deal.over(kUnit + 5));
}

TEST(GroupRecordSharing, NobodyHoldsWhatAnotherHoldsOrWhatIsUsed) {
  RecordSet unused;
  unused.remove({0, 10});
  EXPECT_EQ(held_by_members(unused, {{{5, 20}}, {{15, 30}}, {}}),
            (Held{{{10, 20}}, {{20, 30}}, {}}));
}

}  // namespace
}  // namespace paceline
