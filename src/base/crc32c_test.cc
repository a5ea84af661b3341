#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace paceline {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, IsThatOfTheStandard) {
  // RFC 3720, appendix B.4, and the usual check value.
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, GoesOnFromPieceToPiece) {
  const auto whole = bytes_of("a piece, and another piece of some other length");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    EXPECT_EQ(crc32c(whole.subspan(cut), crc32c(whole.first(cut))), crc32c(whole));
    EXPECT_EQ(crc32c_by_table(whole.subspan(cut)), crc32c(whole.subspan(cut)));
  }
}

}  // namespace
}  // namespace paceline
