#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "paceline/error.h"
#include "summary/proto_reader.h"
#include "summary/proto_writer.h"

namespace paceline {
namespace {

using namespace std::literals;
using ::testing::ElementsAre;

TEST(Proto, WritesWhatTheFormatSays) {
  ProtoWriter writer;
  writer.integer(1, 150);
  writer.bytes(2, "testing");
  writer.float32(3, 1);
  writer.float64(4, 1);
  EXPECT_EQ(writer.message(),
            "\x08\x96\x01\x12\x07testing\x1d\0\0\x80\x3f\x21\0\0\0\0\0\0\xf0\x3f"sv);
}

TEST(Proto, ReadsWhatItWrites) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<double> doubles = {1.5, -2};
  ProtoWriter writer;
  writer.integer(1, kLeast);
  writer.float64(2, -0.5);
  writer.float32(3, 0.25F);
  writer.bytes(400, "");
  writer.packed(5, doubles);
  writer.float64(5, 7);

  ProtoReader reader(writer.message());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.integer(), kLeast);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.float64(), -0.5);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.float32(), 0.25F);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 400);
  EXPECT_EQ(reader.bytes(), "");
  std::vector<double> read;
  while (reader.next()) reader.append_to(read);
  EXPECT_THAT(read, ElementsAre(1.5, -2, 7));
}

TEST(Proto, RefusesWhatIsNoMessage) {
  const auto read_all = [](std::string_view bytes) {
    for (ProtoReader reader(bytes); reader.next();) {
    }
  };
  for (const std::string_view bytes :
       {"\x08"sv, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv,
        "\x0a\x05"
        "abcd"sv,
        "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv, "\x0d\0\0\0"sv, "\x09\0"sv, "\x0b"sv,
        "\x0f"sv}) {
    EXPECT_THROW(read_all(bytes), Error);
  }
}

TEST(Proto, RefusesAFieldOfAnotherType) {
  ProtoReader reader("\x08\x01"sv);
  ASSERT_TRUE(reader.next());
  EXPECT_THROW(reader.bytes(), Error);
  EXPECT_THROW(reader.float64(), Error);
  std::vector<double> doubles;
  EXPECT_THROW(reader.append_to(doubles), Error);
  ProtoReader odd(
      "\x0a\x03"
      "abc"sv);
  ASSERT_TRUE(odd.next());
  EXPECT_THROW(odd.append_to(doubles), Error);
}

}  // namespace
}  // namespace paceline
