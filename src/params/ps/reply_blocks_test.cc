#include "params/ps/reply_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

TEST(ReplyBlocksTest, UsesMemoryAgain) {
  const auto blocks = std::make_shared<ReplyBlocks>(ReplyBudget(100'000));
  const void* const first = blocks->take(10'000)->memory.data();
  EXPECT_EQ(blocks->kept_bytes(), 10'000u);
  EXPECT_EQ(blocks->take(9'000)->memory.data(), first);
}

TEST(ReplyBlocksTest, KeepsASmallBlockSmall) {
  const auto blocks = std::make_shared<ReplyBlocks>(ReplyBudget(100'000));
  blocks->take(50'000).reset();
  const ReplyBlocks::Lent small = blocks->take(10);
  EXPECT_LT(small->memory.size(), 10'000u);
}

TEST(ReplyBlocksTest, KeepsNoMoreThanItMayLend) {
  const auto blocks = std::make_shared<ReplyBlocks>(ReplyBudget(100'000));
  for (const std::size_t bytes : {60'000, 30'000, 16'000, 8'000}) blocks->take(bytes).reset();
  EXPECT_LE(blocks->kept_bytes(), 100'000u);
}

TEST(ReplyBlocksTest, ThrowsOffWhoLetsTooMuchPileUp) {
  const auto blocks = std::make_shared<ReplyBlocks>(ReplyBudget(100'000));
  const ReplyBlocks::Lent lent = blocks->take(60'000);
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { blocks->take(41'000); }),
              testing::HasSubstr("it reads too slowly: 60256 bytes of replies wait"));
  EXPECT_NE(blocks->take(30'000), nullptr);
}

// Blocks that a peer shares with others are charged to it, too. Otherwise a peer that reads nothing
// could keep all of them from being given back.
TEST(ReplyBlocksTest, CountsWhatIsCommonToSeveralPeers) {
  const auto common = std::make_shared<ReplyBlocks>(ReplyBudget(1'000'000));
  const ReplyBlocks::Common bytes = common->take(60'000);
  const auto blocks = std::make_shared<ReplyBlocks>(ReplyBudget(100'000));
  ReplyBlocks::Lent lent = blocks->take(bytes);
  EXPECT_EQ(lent->span().data(), bytes->span().data());
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { blocks->take(bytes); }),
              testing::HasSubstr("it reads too slowly: 60256 bytes of replies wait"));
  lent.reset();
  EXPECT_NE(blocks->take(bytes), nullptr);
}

// Small replies take memory, too, and replies without a payload take a place in queues.
TEST(ReplyBlocksTest, CountsTheMemoryOfSmallReplies) {
  for (const std::size_t bytes : {0, 1}) {
    const auto blocks = std::make_shared<ReplyBlocks>(ReplyBudget(100'000));
    std::vector<ReplyBlocks::Lent> lent;
    EXPECT_THAT(error_of(ErrorCode::kUnavailable,
                         [&] {
                           while (lent.size() < 1000) lent.push_back(blocks->take(bytes));
                         }),
                testing::HasSubstr("it reads too slowly"))
        << bytes;
  }
}

TEST(ReplyBlocksTest, KeepsNothingOnceItIsClosed) {
  const auto blocks = std::make_shared<ReplyBlocks>(ReplyBudget(100'000));
  ReplyBlocks::Lent lent = blocks->take(10'000);
  blocks->take(20'000).reset();
  blocks->close();
  EXPECT_EQ(blocks->kept_bytes(), 0u);
  lent.reset();
  EXPECT_EQ(blocks->kept_bytes(), 0u);
}

}  // namespace
}  // namespace paceline
