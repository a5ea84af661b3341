#include "params/worker/worker_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

FrameHeader state_of(std::uint32_t piece, std::uint16_t array, std::uint64_t offset,
                     std::uint32_t bytes) {
  return {.payload_bytes = bytes, .flags = array, .id = piece, .offset = offset};
}

/// Two variables: the first has a piece on each of two ps tasks, the second lies whole on ps 1. The
/// test reads the first one.
class PendingReadTest : public testing::Test {
 protected:
  static std::vector<VariableSpec> two_variables() {
    VariableSpec adam{.name = "w", .shape = {4, 2}};
    adam.rule = Adam{};
    return {adam, {.name = "other", .shape = {4}}};
  }
  /// Writes a payload to its place and reports that it has arrived, as a frame from the ps would.
  void bring(FrameHeader header, std::byte value) {
    const std::span<std::byte> place = read_.place(header);
    std::ranges::fill(place, value);
    read_.arrived(pieces_[header.id].ps, header);
  }
  std::string refusal(const FrameHeader& header) {
    return error_of(ErrorCode::kDataLoss, [&] { read_.place(header); });
  }
  /// Brings the value and the two slots of a piece, but not its step count.
  void bring_arrays(std::uint32_t piece) {
    for (const std::uint16_t array : {0, 1, 2}) {
      bring(state_of(piece, array, 0, 16), std::byte(array + 1));
    }
  }

  const std::vector<VariableSpec> specs_ = two_variables();
  const std::vector<Piece> pieces_ = {{.id = 0, .variable = 0, .first_row = 0, .rows = 2, .ps = 0},
                                      {.id = 1, .variable = 0, .first_row = 2, .rows = 2, .ps = 1},
                                      {.id = 2, .variable = 1, .first_row = 0, .rows = 4, .ps = 1}};
  const std::vector<VariableId> asked_ = {0};
  PendingRead read_{specs_, pieces_, asked_, 2};
};

TEST_F(PendingReadTest, IsWholeWhenEachPsHasSentAll) {
  EXPECT_EQ(read_.missing(), 2 * (3 * 16 + 8));
  bring_arrays(0);
  EXPECT_EQ(read_.first_missing(), 0);
  bring(state_of(0, 3, 0, 8), std::byte{7});
  EXPECT_EQ(read_.first_missing(), 1);
  bring_arrays(1);
  bring(state_of(1, 3, 0, 8), std::byte{9});
  EXPECT_EQ(read_.missing(), 0);
  EXPECT_EQ(read_.first_missing(), 0);
  const std::vector<VariableState> states = read_.take();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(static_cast<const std::byte*>(states[0].value.raw())[31], std::byte{1});
  EXPECT_EQ(states[0].slots[2].data<std::int64_t>()[0], 0x0707070707070707);  // of the first piece
}

// The connection is cut in the middle of a frame. The next connection brings the whole frame again,
// and the read takes it.
TEST_F(PendingReadTest, AFrameThatHadBegunToComeMayComeAgain) {
  const FrameHeader header = state_of(0, 0, 0, 12);
  read_.place(header);
  bring(header, std::byte{1});
  bring(state_of(0, 0, 12, 4), std::byte{1});
  EXPECT_EQ(read_.missing(), 2 * (3 * 16 + 8) - 16);
}

TEST_F(PendingReadTest, RefusesWhatWasNotAskedFor) {
  EXPECT_THAT(refusal(state_of(2, 0, 0, 16)), HasSubstr("nobody asked for"));
  EXPECT_THAT(refusal(state_of(0, 4, 0, 8)), HasSubstr("nobody asked for"));
  EXPECT_THAT(refusal(state_of(3, 0, 0, 16)), HasSubstr("nobody asked for"));
}

// If bytes that arrive twice counted twice, a ps could seem to have answered before it has, or
// overwrite bytes that have been read.
TEST_F(PendingReadTest, RefusesWhatCameAlready) {
  bring(state_of(0, 0, 0, 12), std::byte{1});
  EXPECT_THAT(refusal(state_of(0, 0, 0, 4)), HasSubstr("of which 12 of 16 came"));
  EXPECT_THAT(refusal(state_of(0, 0, 12, 5)), HasSubstr("state of 5 bytes"));
  bring(state_of(0, 0, 12, 4), std::byte{1});
  EXPECT_THAT(refusal(state_of(0, 0, 16, 1)), HasSubstr("16 of 16 came"));
  read_.take();
  EXPECT_THAT(refusal(state_of(0, 0, 16, 1)), HasSubstr("16 of 16 came"));
}

}  // namespace
}  // namespace paceline
