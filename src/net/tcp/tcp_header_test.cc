#include "net/tcp/tcp_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

constexpr FrameHeader kExample{.payload_bytes = 0x01020304,
                               .type = 0x0506,
                               .flags = 0x0708,
                               .id = 0x090a0b0c,
                               .offset = 0x0d0e0f1011121314,
                               .step = 0x15161718191a1b1c};

TEST(TcpHeader, BytesAreAsDocumented) {
  std::vector<int> bytes;
  for (std::byte b : encode_tcp(kExample)) bytes.push_back(int(b));
  EXPECT_THAT(bytes, testing::ElementsAre('P', 'L', 'N', '2', 4, 3, 2, 1, 6, 5, 8, 7, 12, 11, 10, 9,
                                          0x14, 0x13, 0x12, 0x11, 0x10, 0xf, 0xe, 0xd, 0x1c, 0x1b,
                                          0x1a, 0x19, 0x18, 0x17, 0x16, 0x15,  //
                                          0x1b, 0xfb, 0x23, 0xa1));
}

TEST(TcpHeader, IsDecodedToWhatWasEncoded) {
  EXPECT_EQ(encode(decode_tcp(encode_tcp(kExample))), encode(kExample));
}

TEST(TcpHeader, AnyChangedBitIsDataLoss) {
  for (std::size_t byte = 0; byte < kTcpHeaderBytes; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      TcpHeaderBytes bytes = encode_tcp(kExample);
      bytes[byte] ^= std::byte(1 << bit);
      const bool in_magic = byte < sizeof kTcpFrameMagic;
      EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { decode_tcp(bytes); }),
                  HasSubstr(in_magic ? "garbage where a frame should begin"
                                     : "the header of a frame was changed"))
          << byte << ", " << bit;
    }
  }
}

TEST(TcpHeader, OfALyingLengthAndOfAnOlderVersionAreDataLoss) {
  const auto too_long = encode_tcp({.payload_bytes = kMaxPayloadBytes + 1});
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { decode_tcp(too_long); }),
              HasSubstr(std::to_string(kMaxPayloadBytes + 1)));
  TcpHeaderBytes older{};
  encode(kExample, std::span(older).first<kFrameHeaderBytes>());
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { decode_tcp(older); }),
              HasSubstr("an older version of Paceline"));
}

TEST(TcpHeader, SaysWhichFramesPayloadWasChanged) {
  const FrameHeader header{.payload_bytes = 3, .type = 15};
  EXPECT_NO_THROW(check_payload(header, 0x364b3fb7, 0x364b3fb7));
  EXPECT_EQ(error_of(ErrorCode::kDataLoss, [&] { check_payload(header, 0x364b3fb6, 0x364b3fb7); }),
            "the 3 bytes of a frame of type 15 were changed on their way: their checksum is "
            "364b3fb6, and 364b3fb7 was sent");
}

}  // namespace
}  // namespace paceline
