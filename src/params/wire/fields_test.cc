#include "params/wire/fields.h"

#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

TEST(Wire, ReadsBackWhatWasWritten) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(std::int64_t{-5});
  writer.put_text("söft/max");
  writer.put(0.1f);
  WireReader reader(bytes, "test");
  EXPECT_EQ(reader.get<std::int64_t>(), -5);
  EXPECT_EQ(reader.get_text(), "söft/max");
  EXPECT_EQ(reader.get<float>(), 0.1f);
  reader.end();
}

TEST(Wire, ALengthThatLiesIsAnErrorNotARead) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(std::uint32_t{0xffffffff});
  writer.put(std::uint32_t{7});
  EXPECT_THROW(WireReader(bytes, "test").get_count(4), Error);
  EXPECT_THROW(WireReader(bytes, "test").get_text(), Error);
  EXPECT_THROW(WireReader(bytes, "test").get_all<double>(2), Error);
  EXPECT_THROW(WireReader(bytes, "test").get_all<double>(std::size_t{1} << 61), Error);
}

TEST(Wire, BytesLeftOverAreAnError) {
  std::vector<std::byte> bytes;
  WireWriter(bytes).put(std::uint16_t{1});
  WireReader reader(bytes, "test");
  reader.get<std::uint8_t>();
  EXPECT_THROW(reader.end(), Error);
}

TEST(Wire, AnUsedBufferKeepsItsMemory) {
  std::vector<std::byte> bytes;
  WireWriter(bytes).put_text("something long enough to need memory");
  const std::byte* const data = bytes.data();
  WireWriter(bytes).put_text("short");
  EXPECT_EQ(bytes.data(), data);
  EXPECT_EQ(bytes.size(), 7u);
}

}  // namespace
}  // namespace paceline
