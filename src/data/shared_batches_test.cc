#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/testing/error_of.h"
#include "data/testing/given_blocks.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

class SharedBatchesTest : public ::testing::Test {
 protected:
  /// Uses all batches and returns them as "epoch:index". A "+" marks a batch that goes on with the
  /// state of the batch before.
  std::vector<std::string> use_all() {
    std::vector<std::string> used;
    while (const auto batch = shared_.next(blocks_)) {
      used.push_back((batch->begins_block ? "" : "+") + std::to_string(batch->epoch) + ":" +
                     std::to_string(batch->index));
      shared_.use(position_);
    }
    return used;
  }

  const std::shared_ptr<GivenBlocks> blocks_ = std::make_shared<GivenBlocks>();
  SharedBatches shared_{10, 4, 2};
  TaskPosition position_;
};

TEST_F(SharedBatchesTest, AreAskedForInBlocksBelowTheLastEpochsEnd) {
  blocks_->is_over = true;
  EXPECT_THAT(use_all(), ElementsAre());
  EXPECT_EQ(blocks_->wished.records, 4);
  EXPECT_EQ(blocks_->wished.limit, 20);
}

TEST_F(SharedBatchesTest, BeginAStateAnewWhereABlockDoesNotFollowTheLastOne) {
  blocks_->blocks = {{0, 2}, {2, 4}, {7, 12}, {5, 6}};
  blocks_->is_over = true;
  EXPECT_THAT(use_all(), ElementsAre("0:0", "+0:1", "+0:2", "+0:3", "0:7", "+0:8", "+0:9", "1:0",
                                     "+1:1", "0:5"));
  EXPECT_EQ(position_.numbers[kTakenRecords], 10);
}

TEST_F(SharedBatchesTest, IsTheSameUntilItIsUsed) {
  blocks_->blocks = {{3, 5}};
  EXPECT_EQ(shared_.next(blocks_)->index, 3);
  EXPECT_EQ(shared_.next(blocks_)->index, 3);
  shared_.use(position_);
  EXPECT_EQ(shared_.next(blocks_)->index, 4);
}

TEST_F(SharedBatchesTest, CountsFromWhatTheStepsBeforeHaveRead) {
  blocks_->first_taken = 100;
  blocks_->blocks = {{0, 1}};
  shared_.next(blocks_);
  shared_.use(position_);
  EXPECT_EQ(position_.numbers[kTakenRecords], 101);
}

TEST_F(SharedBatchesTest, BeginsAnewWhenOthersHaveWhatItTook) {
  blocks_->blocks = {{0, 2}, {6, 8}};
  shared_.next(blocks_);
  shared_.use(position_);
  blocks_->blocks = {{6, 7}};
  blocks_->is_revoked = true;
  const auto next = shared_.next(blocks_);
  EXPECT_EQ(next->index, 6);
  EXPECT_TRUE(next->begins_block);
  EXPECT_EQ(blocks_->begins, 2);
  EXPECT_EQ(blocks_->ends, 1);
}

TEST_F(SharedBatchesTest, WaitsUntilABlockComes) {
  blocks_->check = [this] {
    blocks_->blocks = {{4, 5}};
    blocks_->told();
  };
  EXPECT_EQ(shared_.next(blocks_)->index, 4);
  shared_.use(position_);
  blocks_->check = [] { throw Error(ErrorCode::kCancelled, "interrupted"); };
  EXPECT_NE(error_of(ErrorCode::kCancelled, [this] { shared_.next(blocks_); }), "");
}

TEST(SharedBatches, RefusesNumbersBelowOne) {
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument, [] { SharedBatches(0, 1); }), "");
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument, [] { SharedBatches(1, 0); }), "");
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument, [] { SharedBatches(1, 1, 0); }), "");
}

}  // namespace
}  // namespace paceline
