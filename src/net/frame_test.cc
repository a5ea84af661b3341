#include "net/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "paceline/error.h"

namespace paceline {
namespace {

FrameHeader example() {
  return {.payload_bytes = 0x01020304,
          .type = 0x0506,
          .flags = 0x0708,
          .id = 0x090a0b0c,
          .offset = 0x0d0e0f1011121314,
          .step = 0x15161718191a1b1c};
}

TEST(Frame, BytesAreAsDocumented) {
  std::vector<int> bytes;
  for (std::byte b : encode(example())) bytes.push_back(int(b));
  EXPECT_THAT(bytes, testing::ElementsAre('P', 'L', 'N', '1', 4, 3, 2, 1, 6, 5, 8, 7, 12, 11, 10, 9,
                                          0x14, 0x13, 0x12, 0x11, 0x10, 0xf, 0xe, 0xd, 0x1c, 0x1b,
                                          0x1a, 0x19, 0x18, 0x17, 0x16, 0x15));
}

TEST(Frame, IsDecodedToWhatWasEncoded) {
  const FrameHeader back = decode(encode(example()), kMaxPayloadBytes);
  EXPECT_EQ(back.payload_bytes, example().payload_bytes);
  EXPECT_EQ(back.type, example().type);
  EXPECT_EQ(back.flags, example().flags);
  EXPECT_EQ(back.id, example().id);
  EXPECT_EQ(back.offset, example().offset);
  EXPECT_EQ(back.step, example().step);
}

TEST(Frame, WrongMagicAndTooLongAreDataLoss) {
  auto bytes = encode(example());
  EXPECT_THROW(decode(bytes, example().payload_bytes - 1), Error);
  bytes[0] = std::byte{'G'};
  try {
    decode(bytes, kMaxPayloadBytes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), testing::HasSubstr("'GLN1"));
  }
}

}  // namespace
}  // namespace paceline
