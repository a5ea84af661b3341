#include "params/reply_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

TEST(ReplyBlocksTest, UsesMemoryAgain) {
  const auto blocks = std::make_shared<ReplyBlocks>(100'000);
  const void* const first = blocks->take(10'000)->memory.data();
  EXPECT_EQ(blocks->kept_bytes(), 10'000u);
  EXPECT_EQ(blocks->take(5'000)->memory.data(), first);
}

TEST(ReplyBlocksTest, ThrowsOffWhoLetsTooMuchPileUp) {
  const auto blocks = std::make_shared<ReplyBlocks>(100);
  const ReplyBlocks::Lent lent = blocks->take(60);
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { blocks->take(41); }),
              testing::HasSubstr("it reads too slowly: 60 bytes of replies wait"));
  EXPECT_NE(blocks->take(40), nullptr);
}

TEST(ReplyBlocksTest, KeepsNothingOnceItIsClosed) {
  const auto blocks = std::make_shared<ReplyBlocks>(100'000);
  ReplyBlocks::Lent lent = blocks->take(10'000);
  blocks->take(20'000).reset();
  blocks->close();
  EXPECT_EQ(blocks->kept_bytes(), 0u);
  lent.reset();
  EXPECT_EQ(blocks->kept_bytes(), 0u);
}

}  // namespace
}  // namespace paceline
