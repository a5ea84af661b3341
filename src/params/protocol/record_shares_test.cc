#include "params/protocol/record_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two workers, whose processes have the incarnation 1.
class RecordSharesTest : public ::testing::Test {
 protected:
  RecordSharesTest() {
    for (const int worker : {0, 1}) shares_.joined(worker, 1, answers_);
  }
  std::vector<RecordRange> ask(int worker, std::int64_t records, std::int64_t limit = 1000) {
    answers_.clear();
    shares_.ask(worker, 1, {.records = records, .limit = limit}, answers_);
    return answers_.empty() ? std::vector<RecordRange>() : answers_.front().given.ranges;
  }
  std::vector<RecordRange> unused() const { return shares_.unused().ranges(); }

  RecordShares shares_{2, true};
  RecordShares::Answers answers_;
};

TEST_F(RecordSharesTest, WhoeverAsksGetsTheNextOnes) {
  EXPECT_THAT(ask(0, 10), ElementsAre(RecordRange{0, 10}));
  EXPECT_THAT(ask(1, 5), ElementsAre(RecordRange{10, 15}));
  EXPECT_THAT(ask(0, 10), ElementsAre(RecordRange{15, 25}));
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, RecordSet::kNoEnd}));
}

TEST_F(RecordSharesTest, AWishThatIsAnsweredInPartWaitsForTheRest) {
  ask(0, 10, 30);
  ask(0, 12, 30);
  EXPECT_THAT(ask(1, 16, 30), ElementsAre(RecordRange{22, 30}));
  EXPECT_FALSE(answers_.front().given.over) << "what the other has may come back";
  answers_.clear();
  shares_.left(0, 1, false, answers_);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_.front().given.ranges, ElementsAre(RecordRange{0, 8}));
  shares_.ask(1, 1, {.records = 0, .limit = 30, .starves = true}, answers_);
  EXPECT_EQ(answers_.size(), 1u) << "it was answered whole";
}

TEST(RecordShares, WithoutWaitingTheLastOnesComeWithTheWordThatAllIsOver) {
  RecordShares shares(2, false);
  RecordShares::Answers answers;
  for (const int worker : {0, 1}) shares.joined(worker, 1, answers);
  shares.ask(0, 1, {.records = 12, .limit = 20}, answers);
  shares.ask(1, 1, {.records = 16, .limit = 20}, answers);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[1].given.ranges, ElementsAre(RecordRange{12, 20}));
  EXPECT_TRUE(answers[1].given.over);
}

TEST_F(RecordSharesTest, RecordsAreUsedWhenTheirStepCounts) {
  ask(0, 20);
  ask(1, 10);
  shares_.reads(0, 1, 7, 10);
  shares_.counted(0, 1, 6, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, RecordSet::kNoEnd}));
  shares_.counted(0, 1, 7, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{10, RecordSet::kNoEnd}));
}

TEST_F(RecordSharesTest, WhatALostWorkerHasNotUsedIsGivenAgain) {
  ask(0, 20);
  ask(1, 10);
  shares_.reads(0, 1, 0, 8);
  shares_.counted(0, 1, 0, answers_);
  shares_.reads(0, 1, 1, 16);
  shares_.left(0, 1, false, answers_);
  EXPECT_THAT(ask(1, 20), ElementsAre(RecordRange{8, 20}, RecordRange{30, 38}));
}

TEST_F(RecordSharesTest, AStepThatMayStillCountKeepsItsRecords) {
  ask(0, 20);
  shares_.reads(0, 1, 0, 10);
  shares_.left(0, 1, true, answers_);
  EXPECT_THAT(ask(1, 30), ElementsAre(RecordRange{10, 40}));
  shares_.counted(0, 1, 0, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{10, RecordSet::kNoEnd}));
}

TEST_F(RecordSharesTest, AStepInVainGivesItsRecordsBack) {
  ask(0, 20);
  shares_.reads(0, 1, 0, 10);
  shares_.in_vain(0, 1, 0, answers_);
  EXPECT_THAT(ask(1, 20), ElementsAre(RecordRange{0, 10}, RecordRange{20, 30}));
  shares_.reads(0, 1, 1, 20);
  shares_.counted(0, 1, 1, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, 10}, RecordRange{20, RecordSet::kNoEnd}));
}

TEST_F(RecordSharesTest, ANewProcessOfAWorkerBeginsWithNothing) {
  ask(0, 20);
  shares_.joined(0, 2, answers_);
  EXPECT_THAT(ask(0, 5), IsEmpty());
  shares_.ask(0, 2, {.records = 5, .limit = 1000}, answers_);
  EXPECT_THAT(answers_.back().given.ranges, ElementsAre(RecordRange{0, 5}));
}

TEST_F(RecordSharesTest, WhoeverFindsNothingLeftWaitsForTheOthers) {
  ask(0, 20, 20);
  EXPECT_THAT(ask(1, 10, 20), IsEmpty());
  EXPECT_THAT(answers_, IsEmpty());
  shares_.reads(0, 1, 0, 15);
  shares_.counted(0, 1, 0, answers_);
  EXPECT_THAT(answers_, IsEmpty());
  shares_.left(0, 1, false, answers_);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].worker, 1);
  EXPECT_THAT(answers_[0].given.ranges, ElementsAre(RecordRange{15, 20}));
  EXPECT_FALSE(answers_[0].given.over);
}

TEST_F(RecordSharesTest, AllIsOverOnceEverythingIsUsed) {
  ask(0, 20, 20);
  ask(1, 10, 20);
  shares_.reads(0, 1, 0, 20);
  shares_.counted(0, 1, 0, answers_);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(answers_[0].given.over);
}

TEST_F(RecordSharesTest, AllIsOverWhereWhoeverHoldsSomeStarves) {
  ask(0, 14, 20);
  ask(1, 6, 20);
  for (const int worker : {0, 1}) ask(worker, 10, 20);
  EXPECT_THAT(answers_, IsEmpty());
  shares_.ask(0, 1, {.records = 0, .limit = 20, .starves = true}, answers_);
  EXPECT_THAT(answers_, IsEmpty());
  shares_.ask(1, 1, {.records = 0, .limit = 20, .starves = true}, answers_);
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_TRUE(answers_[0].given.over && answers_[1].given.over);
}

TEST_F(RecordSharesTest, NobodyWaitsForAWorkerWhoseTrainingIsOver) {
  ask(0, 20, 20);
  ask(1, 10, 20);
  EXPECT_THAT(answers_, IsEmpty());
  shares_.set_done(0, 1, answers_);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(answers_[0].given.over);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, RecordSet::kNoEnd}));
}

TEST(RecordSharesOfRounds, WhoeverFindsNothingLeftIsToldAtOnce) {
  RecordShares shares(2, false);
  RecordShares::Answers answers;
  for (const int worker : {0, 1}) shares.joined(worker, 1, answers);
  shares.ask(0, 1, {.records = 20, .limit = 20}, answers);
  shares.ask(1, 1, {.records = 20, .limit = 20}, answers);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(answers[1].given.over);
}

TEST_F(RecordSharesTest, RefusesWhatCannotBe) {
  const auto why = [&](auto call) { return error_of(ErrorCode::kDataLoss, call); };
  EXPECT_THAT(why([&] { ask(0, 0); }), HasSubstr("worker:0 asks for 0 records"));
  EXPECT_THAT(why([&] { ask(0, std::int64_t{1} << 40); }), HasSubstr("asks for"));
  ask(0, 10);
  EXPECT_THAT(why([&] { shares_.reads(0, 1, 3, 11); }), HasSubstr("up to record 11 of 10"));
}

}  // namespace
}  // namespace paceline
