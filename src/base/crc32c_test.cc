#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/philox.h"

namespace paceline {
namespace {

using Bytes = std::span<const std::byte>;

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> rising_bytes(std::size_t count, int first, int step) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = std::byte(first + int(i) * step);
  return bytes;
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = std::byte(philox(7, i, 0)[0]);
  return bytes;
}

class Crc32cBy : public ::testing::TestWithParam<Crc32cMethod> {};

TEST_P(Crc32cBy, IsThatOfTheStandard) {
  const auto compute = GetParam().compute;
  // RFC 3720, appendix B.4: zeros, ones, rising bytes, falling bytes, and a SCSI command. Then the
  // usual check value.
  EXPECT_EQ(compute(std::vector<std::byte>(32), 0), 0x8a9136aau);
  EXPECT_EQ(compute(std::vector<std::byte>(32, std::byte{0xff}), 0), 0x62a8ab43u);
  EXPECT_EQ(compute(rising_bytes(32, 0, 1), 0), 0x46dd794eu);
  EXPECT_EQ(compute(rising_bytes(32, 31, -1), 0), 0x113fdb5cu);
  constexpr std::uint8_t kCommand[48] = {
      0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
      0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0};
  EXPECT_EQ(compute(std::as_bytes(std::span(kCommand)), 0), 0xd9963a56u);
  EXPECT_EQ(compute(bytes_of("123456789"), 0), 0xe3069283u);
  EXPECT_EQ(compute({}, 0), 0u);
}

// Returns the checksums of all prefixes of `bytes`, by the method that takes one byte at a time.
std::vector<std::uint32_t> checksums_of_beginnings(Bytes bytes) {
  std::vector<std::uint32_t> checksums{0};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    checksums.push_back(crc32c_methods().front().compute(bytes.subspan(i, 1), checksums.back()));
  return checksums;
}

TEST_P(Crc32cBy, IsThatOfOneByteAfterTheOtherAtEveryAlignment) {
  const std::vector<std::byte> all = random_bytes(1200);
  for (std::size_t begin = 0; begin < 64; ++begin) {
    const Bytes bytes = Bytes(all).subspan(begin);
    const std::vector<std::uint32_t> expected = checksums_of_beginnings(bytes);
    for (std::size_t size = 0; size <= bytes.size(); ++size)
      ASSERT_EQ(GetParam().compute(bytes.first(size), 0), expected[size]) << begin << ", " << size;
  }
}

TEST_P(Crc32cBy, IsThatOfOneByteAfterTheOtherOfEveryLength) {
  const std::vector<std::byte> all = random_bytes(14'000);
  const std::vector<std::uint32_t> expected = checksums_of_beginnings(all);
  for (std::size_t size = 0; size <= all.size(); ++size)
    ASSERT_EQ(GetParam().compute(Bytes(all).first(size), 0), expected[size]) << size;
}

TEST_P(Crc32cBy, GoesOnFromPieceToPiece) {
  const std::vector<std::byte> bytes = random_bytes(7000);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::uint32_t before = crc32c(Bytes(bytes).first(cut));
    ASSERT_EQ(GetParam().compute(Bytes(bytes).subspan(cut), before), whole) << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Crc32cBy, ::testing::ValuesIn(crc32c_methods()),
                         [](const auto& one) { return "n" + std::to_string(one.index); });

TEST(Crc32c, TakesTheFastestMethodThatTheProcessorHas) {
  EXPECT_STREQ(crc32c_methods().front().name, "table");
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
    ASSERT_GT(crc32c_methods().size(), 1u);
    EXPECT_STREQ(crc32c_methods()[1].name, "sse4.2, pclmul");
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")) {
    EXPECT_STREQ(crc32c_methods().back().name, "avx512f, vpclmulqdq");
  }
#endif
}

}  // namespace
}  // namespace paceline
