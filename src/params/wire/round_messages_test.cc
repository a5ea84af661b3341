#include "params/wire/round_messages.h"

#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr RoundContribution kGiven{
    .worker = 1, .incarnation = 2, .step = 3, .round = 4, .examples = 5, .clip_norm = 6};

// Checks that a message is decoded as it was, and that every shorter payload, and a longer one, is
// refused.
template <typename Message, typename Decode>
void expect_comes_back(const Message& message, Decode&& decode) {
  std::vector<std::byte> bytes = encode(message);
  EXPECT_EQ(decode(bytes), message);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(decode(std::span(bytes).first(size)), Error) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_THROW(decode(bytes), Error);
}

TEST(RoundMessages, ComeBackAsTheyWere) {
  expect_comes_back(kGiven, decode_round_contribution);
  const RoundDecision decision{.closes = true,
                               .round = 7,
                               .contributors = {kGiven, {}},
                               .dropped = {kGiven},
                               .displaced = {{}, kGiven}};
  expect_comes_back(decision, decode_round_decision);
  expect_comes_back(CommittedRound{.round = 5, .contributors = {0, 3}, .squares = 0.5},
                    decode_committed_round);
  expect_comes_back(BeginAgain{.unreached = {1, 4}}, decode_begin_again);
  expect_comes_back(RoundSquares{.round = 8, .sum = 0.5}, decode_round_squares);
  expect_comes_back(RoundScale{.round = 9, .scale = 0.25f}, decode_round_scale);
}

// The bytes must stay as docs/wire.md gives them.
TEST(RoundMessages, HaveTheBytesOfTheirFormat) {
  const std::vector<std::byte> bytes = encode(kGiven);
  ASSERT_EQ(bytes.size(), 4U + 8 + 8 + 8 + 8 + 4);
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[4], std::byte{2});
  EXPECT_EQ(bytes[12], std::byte{3});
  EXPECT_EQ(bytes[20], std::byte{4});
  EXPECT_EQ(bytes[28], std::byte{5});
  EXPECT_EQ(bytes[39], std::byte{0x40}) << "6 as float32 is 40c00000";
  const RoundDecision decision{
      .closes = true, .round = 7, .contributors = {}, .dropped = {}, .displaced = {}};
  EXPECT_EQ(encode(decision).size(), 1U + 8 + 3 * 4);
}

}  // namespace
}  // namespace paceline
