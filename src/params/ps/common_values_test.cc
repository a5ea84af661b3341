#include "params/ps/common_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "params/wire/rounded_floats.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

// A piece with the values 0, 1, 2 and 3, and a part of it that holds the last two.
class CommonValuesTest : public ::testing::Test {
 protected:
  CommonValuesTest() {
    auto* const values = reinterpret_cast<float*>(memory_.data());
    for (int i = 0; i < 4; ++i) values[i] = float(i);
  }
  static std::vector<float> floats_of(const ReplyBlocks::Common& block) {
    const std::span<const std::byte> bytes = block->span();
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }

  const VariableSpec variable_{.name = "w", .shape = {4}, .rule = Sgd{}};
  Buffer memory_{4 * sizeof(float)};
  ApplyPool pool_{1};
  ShardPiece piece_{variable_, Piece{.rows = 4}, memory_.span(), pool_};
  const std::shared_ptr<ReplyBlocks> blocks_ = std::make_shared<ReplyBlocks>(ReplyBudget(1 << 20));
  CommonValues values_{piece_, {2 * sizeof(float), 2 * sizeof(float)}, *blocks_};
};

TEST_F(CommonValuesTest, AreCopiedOnceForAllWorkers) {
  const ReplyBlocks::Common first = values_.travelling_as(DType::kFloat32);
  EXPECT_THAT(floats_of(first), ElementsAre(2, 3));
  EXPECT_EQ(values_.travelling_as(DType::kFloat32), first);
  EXPECT_FALSE(values_.is_whole());
}

TEST_F(CommonValuesTest, AreMadeOnceForEachTypeThatTheyTravelAs) {
  const ReplyBlocks::Common rounded = values_.travelling_as(DType::kBFloat16);
  const ReplyBlocks::Common whole = values_.travelling_as(DType::kFloat32);
  EXPECT_EQ(rounded->bytes, 4u);
  EXPECT_THAT(floats_of(whole), ElementsAre(2, 3));
  EXPECT_EQ(values_.travelling_as(DType::kBFloat16), rounded);
  float widened[2];
  const std::span<std::byte> place = std::as_writable_bytes(std::span(widened));
  std::ranges::copy(rounded->span(), place_of_rounded(place, DType::kBFloat16).begin());
  widen_in_place(place, DType::kBFloat16);
  EXPECT_THAT(widened, ElementsAre(2, 3));
}

// Several workers are sent one block. Its memory is given back only once all of them were sent the
// values.
TEST_F(CommonValuesTest, TheLastWorkerThatIsSentThemGivesTheirMemoryBack) {
  const auto one = std::make_shared<ReplyBlocks>(ReplyBudget(10'000));
  const auto other = std::make_shared<ReplyBlocks>(ReplyBudget(10'000));
  ReplyBlocks::Lent sent, waiting;
  {
    CommonValues values(piece_, {0, 4 * sizeof(float)}, *blocks_);
    sent = one->take(values.travelling_as(DType::kFloat32));
    waiting = other->take(values.travelling_as(DType::kFloat32));
    EXPECT_EQ(sent->span().data(), waiting->span().data());
    EXPECT_EQ(sent->span().size(), 16u);
  }
  sent.reset();
  EXPECT_EQ(blocks_->kept_bytes(), 0u);
  waiting.reset();
  EXPECT_GT(blocks_->kept_bytes(), 0u);
  EXPECT_EQ(one->kept_bytes(), 0u);
}

}  // namespace
}  // namespace paceline
