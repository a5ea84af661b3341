#include "params/protocol/ps_record_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two workers; each process has incarnation 1.
class PsRecordSharingTest : public ::testing::Test {
 protected:
  PsRecordSharingTest() {
    for (const int worker : {0, 1}) shares_.joined(worker, 1, answers_);
  }
  std::vector<RecordRange> ask(int worker, std::int64_t records, std::int64_t limit = 1000) {
    answers_.clear();
    shares_.ask(worker, 1, {.records = records, .limit = limit}, answers_);
    return answers_.empty() ? std::vector<RecordRange>() : answers_.front().given.ranges;
  }
  std::vector<RecordRange> unused() const { return shares_.unused().ranges(); }

  PsRecordSharing shares_{2, true};
  PsRecordSharing::Answers answers_;
};

TEST_F(PsRecordSharingTest, WhoeverAsksGetsTheNextOnes) {
  EXPECT_THAT(ask(0, 10), ElementsAre(RecordRange{0, 10}));
  EXPECT_THAT(ask(1, 5), ElementsAre(RecordRange{10, 15}));
  EXPECT_THAT(ask(0, 10), ElementsAre(RecordRange{15, 25}));
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, RecordSet::kNoEnd}));
}

TEST_F(PsRecordSharingTest, AWishThatIsAnsweredInPartWaitsForTheRest) {
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

TEST(PsRecordSharing, WithoutWaitingTheLastOnesComeWithTheWordThatAllIsOver) {
  PsRecordSharing shares(2, false);
  PsRecordSharing::Answers answers;
  for (const int worker : {0, 1}) shares.joined(worker, 1, answers);
  shares.ask(0, 1, {.records = 12, .limit = 20}, answers);
  shares.ask(1, 1, {.records = 16, .limit = 20}, answers);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[1].given.ranges, ElementsAre(RecordRange{12, 20}));
  EXPECT_TRUE(answers[1].given.over);
}

TEST_F(PsRecordSharingTest, RecordsAreUsedWhenTheirStepCounts) {
  ask(0, 20);
  ask(1, 10);
  shares_.reads(0, 1, 7, 10, answers_);
  shares_.counted(0, 1, 6, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, RecordSet::kNoEnd}));
  shares_.counted(0, 1, 7, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{10, RecordSet::kNoEnd}));
}

TEST_F(PsRecordSharingTest, WhatALostWorkerHasNotUsedIsGivenAgain) {
  ask(0, 20);
  ask(1, 10);
  shares_.reads(0, 1, 0, 8, answers_);
  shares_.counted(0, 1, 0, answers_);
  shares_.reads(0, 1, 1, 16, answers_);
  shares_.left(0, 1, false, answers_);
  EXPECT_THAT(ask(1, 20), ElementsAre(RecordRange{8, 20}, RecordRange{30, 38}));
}

TEST_F(PsRecordSharingTest, AStepThatMayStillCountKeepsItsRecords) {
  ask(0, 20);
  shares_.reads(0, 1, 0, 10, answers_);
  shares_.left(0, 1, true, answers_);
  EXPECT_THAT(ask(1, 30), ElementsAre(RecordRange{10, 40}));
  shares_.counted(0, 1, 0, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{10, RecordSet::kNoEnd}));
}

TEST_F(PsRecordSharingTest, AStepInVainGivesItsRecordsBack) {
  ask(0, 20);
  shares_.reads(0, 1, 0, 10, answers_);
  shares_.in_vain(0, 1, 0, answers_);
  EXPECT_THAT(ask(1, 20), ElementsAre(RecordRange{0, 10}, RecordRange{20, 30}));
  shares_.reads(0, 1, 1, 20, answers_);
  shares_.counted(0, 1, 1, answers_);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, 10}, RecordRange{20, RecordSet::kNoEnd}));
}

TEST_F(PsRecordSharingTest, ANewProcessOfAWorkerBeginsWithNothing) {
  ask(0, 20);
  shares_.joined(0, 2, answers_);
  EXPECT_THAT(ask(0, 5), IsEmpty());
  shares_.ask(0, 2, {.records = 5, .limit = 1000}, answers_);
  EXPECT_THAT(answers_.back().given.ranges, ElementsAre(RecordRange{0, 5}));
}

TEST_F(PsRecordSharingTest, WhoeverFindsNothingLeftWaitsForTheOthers) {
  ask(0, 20, 20);
  EXPECT_THAT(ask(1, 10, 20), IsEmpty());
  EXPECT_THAT(answers_, IsEmpty());
  shares_.reads(0, 1, 0, 15, answers_);
  shares_.counted(0, 1, 0, answers_);
  EXPECT_THAT(answers_, IsEmpty());
  shares_.left(0, 1, false, answers_);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].worker, 1);
  EXPECT_THAT(answers_[0].given.ranges, ElementsAre(RecordRange{15, 20}));
  EXPECT_FALSE(answers_[0].given.over);
}

TEST_F(PsRecordSharingTest, AllIsOverOnceEverythingIsUsed) {
  ask(0, 20, 20);
  ask(1, 10, 20);
  shares_.reads(0, 1, 0, 20, answers_);
  shares_.counted(0, 1, 0, answers_);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(answers_[0].given.over);
}

TEST_F(PsRecordSharingTest, AllIsOverWhereWhoeverHoldsSomeStarves) {
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

TEST_F(PsRecordSharingTest, NobodyWaitsForAWorkerWhoseTrainingIsOver) {
  ask(0, 20, 20);
  ask(1, 10, 20);
  EXPECT_THAT(answers_, IsEmpty());
  shares_.set_done(0, 1, answers_);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(answers_[0].given.over);
  EXPECT_THAT(unused(), ElementsAre(RecordRange{0, RecordSet::kNoEnd}));
}

TEST(PsRecordSharingOfRounds, WhoeverFindsNothingLeftIsToldAtOnce) {
  PsRecordSharing shares(2, false);
  PsRecordSharing::Answers answers;
  for (const int worker : {0, 1}) shares.joined(worker, 1, answers);
  shares.ask(0, 1, {.records = 20, .limit = 20}, answers);
  shares.ask(1, 1, {.records = 20, .limit = 20}, answers);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(answers[1].given.over);
}

TEST_F(PsRecordSharingTest, RefusesWhatCannotBe) {
  const auto why = [&](auto call) { return error_of(ErrorCode::kDataLoss, call); };
  EXPECT_THAT(why([&] { ask(0, 0); }), HasSubstr("worker:0 asks for 0 records"));
  EXPECT_THAT(why([&] { ask(0, std::int64_t{1} << 40); }), HasSubstr("asks for"));
  ask(0, 10);
  EXPECT_THAT(why([&] { shares_.reads(0, 1, 3, 11, answers_); }),
              HasSubstr("up to record 11 of 10"));
}

// The workers read blocks of `block` records, and make one step of each record; `step_times` has
// the time of a step by worker. Returns the time at which the last step ends, as a multiple of the
// time that all steps would take if no worker ever waited.
double epoch_time(std::int64_t records, std::int64_t block, const std::vector<int>& step_times) {
  struct Reader {
    std::int64_t given = 0, read = 0, asked = 0;
    int ends = 0;  // the time at which its step ends
  };
  PsRecordSharing shares(int(step_times.size()), true);
  std::vector<Reader> readers(step_times.size());
  PsRecordSharing::Answers answers;
  const auto take_answers = [&] {
    for (const PsRecordSharing::Answer& answer : std::exchange(answers, {})) {
      for (const RecordRange& range : answer.given.ranges) {
        readers[std::size_t(answer.worker)].given += range.size();
      }
    }
  };
  int last = 0;
  std::int64_t done = 0;
  for (std::size_t w = 0; w < readers.size(); ++w) shares.joined(int(w), 1, answers);
  for (int now = 0; done < records; ++now) {
    for (std::size_t w = 0; w < readers.size(); ++w) {
      Reader& reader = readers[w];
      if (now < reader.ends) continue;
      if (reader.read == reader.asked) {
        reader.asked += block;
        shares.ask(int(w), 1, {.records = block, .limit = records}, answers);
      }
      take_answers();
      if (reader.read == reader.given) continue;
      shares.reads(int(w), 1, reader.read, reader.read + 1, answers);
      take_answers();
      ++reader.read;
      ++done;
      reader.ends = now + step_times[w];
      last = std::max(last, reader.ends);
    }
    EXPECT_LT(now, 100 * records) << "nobody gets the rest";
    if (now >= 100 * records) break;
  }
  double rate = 0;
  for (const int time : step_times) rate += 1.0 / time;
  return last * rate / double(records);
}

TEST(PsRecordSharing, NobodyWaitsForTheLastBlockOfASlowWorker) {
  EXPECT_LE(epoch_time(300, 16, {1, 3}), 1.05);
  EXPECT_LE(epoch_time(600, 16, {3, 1, 1, 1}), 1.05);
  EXPECT_LE(epoch_time(2323, 16, {10, 30}), 1.01);
}

}  // namespace
}  // namespace paceline
