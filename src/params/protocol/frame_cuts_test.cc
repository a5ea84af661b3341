#include "params/protocol/frame_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Cut> all(const Cuts& cuts) {
  std::vector<Cut> parts;
  for (const Cut cut : cuts) parts.push_back(cut);
  EXPECT_EQ(parts.size(), cuts.size());
  return parts;
}

std::vector<ContributionFrame> frames_of(const ContributionRoute& route) {
  std::vector<ContributionFrame> frames;
  for_contribution_frames(route, [&](const ContributionFrame& frame) { frames.push_back(frame); });
  return frames;
}

TEST(FrameCuts, AreWholeChunksAndARest) {
  EXPECT_THAT(all(byte_cuts(0)), IsEmpty());
  EXPECT_THAT(all(byte_cuts(kChunkBytes)), ElementsAre(Cut{0, kChunkBytes}));
  EXPECT_THAT(
      all(byte_cuts(2 * kChunkBytes + 4)),
      ElementsAre(Cut{0, kChunkBytes}, Cut{kChunkBytes, kChunkBytes}, Cut{2 * kChunkBytes, 4}));
}

TEST(FrameCuts, HoldAsManyRowsAsFitWithTheirNumbersAndAtLeastOne) {
  const std::size_t fit = kChunkBytes / (400 + 4);
  EXPECT_THAT(all(row_cuts(fit + 1, 400)), ElementsAre(Cut{0, fit}, Cut{fit, 1}));
  EXPECT_LE(row_numbers_bytes(fit) + fit * 400, kChunkBytes + sizeof(std::uint32_t));
  EXPECT_THAT(all(row_cuts(2, 3 * kChunkBytes)), ElementsAre(Cut{0, 1}, Cut{1, 1}));
}

TEST(FrameCuts, AContributionInSharedMemoryIsOneHeader) {
  const auto frames = frames_of({.bytes = 10 * kChunkBytes, .in_shared_memory = true, .memory = 3});
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames.front().type, MessageType::kContribution);
  EXPECT_EQ(frames.front().payload_bytes, 0u);
  EXPECT_EQ(frames.front().flags, 3 * kMemoryNumber + kSendValues);
}

TEST(FrameCuts, TheFlagsOfAContributionSayWhatTheWorkerWants) {
  EXPECT_EQ(flags_of({.in_shared_memory = true, .values_mapped = true}), 0);
  EXPECT_EQ(flags_of({.in_shared_memory = true, .values_mapped = true, .renew_copy = true}),
            kRenewCopy);
}

TEST(FrameCuts, RoundedNumbersTakeHalfOfTheWire) {
  const auto frames = frames_of({.bytes = kChunkBytes + 8, .travels_as = DType::kBFloat16});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].payload_bytes, kChunkBytes / 2);
  EXPECT_EQ(frames[1].part, (Cut{kChunkBytes, 8}));
  EXPECT_EQ(frames[1].payload_bytes, 4u);
}

TEST(FrameCuts, BytesTravelWithAScaleForEachBlock) {
  const auto frames = frames_of({.bytes = kChunkBytes + 8, .travels_as = DType::kUInt8});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].payload_bytes, kChunkBytes / 4 + kChunkBytes / 1024 * 2);
  EXPECT_EQ(frames[1].payload_bytes, 2u + 2u);
}

TEST(FrameCuts, RowsBeginWithTheirNumbersEvenWhenThereAreNone) {
  auto frames = frames_of({.bytes = 5 * 400, .rows = 5, .sparse = true});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].type, MessageType::kRowIds);
  EXPECT_EQ(frames[0].payload_bytes, 20u);
  EXPECT_EQ(frames[1].type, MessageType::kChunk);
  EXPECT_EQ(frames_of({.sparse = true}).size(), 1u);
}

TEST(FrameCuts, AWorkerWaitsForWhatTheAnswerBrings) {
  EXPECT_EQ(awaited_after({.bytes = 80}), 80u);
  EXPECT_EQ(awaited_after({.bytes = 80, .in_shared_memory = true}), 80u);
  EXPECT_EQ(awaited_after({.bytes = 80, .in_shared_memory = true, .values_mapped = true}), 1u);
  EXPECT_EQ(awaited_after({.bytes = 80, .rows = 2, .sparse = true}), 0u);
}

}  // namespace
}  // namespace paceline
