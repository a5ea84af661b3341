#include "checkpoint/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "checkpoint/safetensors_file.h"
#include "checkpoint/testing/folder.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

const std::vector<TensorInfo> kTwo = {{"a", DType::kUInt8, {3}}, {"b", DType::kInt32, {1}}};

TEST(SafetensorsWriter, TakesTensorsInAnyOrderAndInPieces) {
  const Folder folder;
  SafetensorsWriter writer(folder.path("f"), kTwo);
  writer.write(0, bytes_of("x"));
  writer.write(1, bytes_of("abcd"));
  writer.write(0, bytes_of("yz"));
  writer.finish();
  const SafetensorsFile file(folder.path("f"));
  EXPECT_EQ(file.read(file.tensor("a")).data<std::uint8_t>()[2], 'z');
  EXPECT_EQ(file.read(file.tensor("b")).item<std::int32_t>(), 0x64636261);
}

TEST(SafetensorsWriter, NothingIsThereBeforeItIsFinishedAndNothingIsLeft) {
  const Folder folder;
  folder.write("f", "older");
  {
    SafetensorsWriter writer(folder.path("f"), kTwo);
    writer.write(0, bytes_of("xyz"));
    EXPECT_EQ(folder.read("f"), "older");
    EXPECT_THAT(error_of([&] { writer.finish(); }), HasSubstr("'b' takes 4 bytes, it was given 0"));
  }
  EXPECT_EQ(folder.read("f"), "older");
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("f"));
}

TEST(SafetensorsWriter, RefusesMoreBytesThanATensorTakes) {
  const Folder folder;
  SafetensorsWriter writer(folder.path("f"), kTwo);
  writer.write(0, bytes_of("xy"));
  EXPECT_THAT(error_of([&] { writer.write(0, bytes_of("zz")); }),
              HasSubstr("'a' takes 3 bytes, it was given 4"));
}

TEST(SafetensorsWriter, RefusesNamesThatTheFormatHasNot) {
  const Folder folder;
  const auto refused = [&](std::vector<TensorInfo> tensors) {
    return error_of([&] { SafetensorsWriter(folder.path("f"), std::move(tensors)); });
  };
  EXPECT_THAT(refused({kTwo[0], kTwo[0]}), HasSubstr("'a' twice"));
  EXPECT_THAT(refused({{"", DType::kUInt8, {}}}), HasSubstr("name ''"));
  EXPECT_THAT(refused({{"__metadata__", DType::kUInt8, {}}}), HasSubstr("'__metadata__'"));
  EXPECT_THAT(refused({{"\xff", DType::kUInt8, {}}}), HasSubstr("no UTF-8"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace paceline::testing
