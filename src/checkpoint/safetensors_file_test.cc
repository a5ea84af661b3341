#include "checkpoint/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <ostream>

#include "base/testing/error_of.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/testing/folder.h"
#include "paceline/error.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string file_bytes(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
}

std::vector<NamedTensor> one_of_each_type() {
  return {{"bytes", Tensor::of<std::uint8_t>({3}, {1, 2, 255})},
          {"scope/flags", Tensor::of<bool>({1}, {true})},
          {"half", Tensor::of<Float16>({3}, {Float16(1), Float16(-2), Float16(0.5f)})},
          {"brain", Tensor::of<BFloat16>({1}, {BFloat16(3)})},
          {"floats", Tensor::of<float>({1, 3}, {1, NAN, -INFINITY})},
          {"ints", Tensor::of<std::int32_t>({1}, {std::numeric_limits<std::int32_t>::min()})},
          {"doubles", Tensor::scalar(0.1)},
          {"longs", Tensor::of<std::int64_t>({1}, {std::numeric_limits<std::int64_t>::max()})},
          {"empty", Tensor(DType::kFloat32, {0, 7})},
          {"quote \" and ü", Tensor::scalar(1.0f)}};
}

TEST(SafetensorsFile, ReadsWhatWasWritten) {
  const Folder folder;
  const std::vector<NamedTensor> tensors = one_of_each_type();
  const WrittenFile written =
      write_safetensors(folder.path("a.safetensors"), tensors, {{"step", "7"}});
  const SafetensorsFile file(folder.path("a.safetensors"));
  EXPECT_EQ(file.tensors().size(), tensors.size());
  EXPECT_EQ(file.metadata().at("step"), "7");
  for (const NamedTensor& expected : tensors) {
    const Tensor read = file.read(file.tensor(expected.name));
    EXPECT_EQ(read.dtype(), expected.tensor.dtype()) << expected.name;
    EXPECT_EQ(read.shape(), expected.tensor.shape()) << expected.name;
    EXPECT_EQ(file_bytes(read), file_bytes(expected.tensor)) << expected.name;
  }
  EXPECT_EQ(written.file, "a.safetensors");
  EXPECT_EQ(written.bytes, file.file().size());
  EXPECT_EQ(written.checksum, checksum_of(file.file(), written.bytes));
}

TEST(SafetensorsFile, EveryTensorIsAlignedToItsElements) {
  const Folder folder;
  write_safetensors(folder.path("a"), one_of_each_type());
  const std::string bytes = folder.read("a");
  const SafetensorsFile file(folder.path("a"));
  for (const StoredTensor& tensor : file.tensors()) {
    EXPECT_EQ(tensor.offset % size_of(tensor.dtype), 0u) << tensor.name;
  }
  EXPECT_EQ((kHeaderLengthBytes + std::size_t(std::uint8_t(bytes[0])) +
             256 * std::size_t(std::uint8_t(bytes[1]))) %
                64,
            0u);
}

TEST(SafetensorsFile, HasTheBytesOfTheFormat) {
  const Folder folder;
  write_safetensors(folder.path("a"),
                    std::vector<NamedTensor>{{"x", Tensor::of<std::uint8_t>({2}, {65, 66})}});
  const std::string header = R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  EXPECT_EQ(folder.read("a"),
            safetensors_bytes(header + std::string(56 - header.size(), ' '), "AB"));
}

TEST(SafetensorsFile, ReadsPartsOfATensorAndNoMore) {
  const Folder folder;
  folder.write(
      "a", safetensors_bytes(R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "abcd"));
  const SafetensorsFile file(folder.path("a"));
  std::string part(2, ' ');
  file.read(file.tensor("x"), 1, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "bc");
  EXPECT_THAT(
      error_of([&] { file.read(file.tensor("x"), 3, std::as_writable_bytes(std::span(part))); }),
      HasSubstr("'x'"));
}

TEST(SafetensorsFile, NamesTheNearestOfATensorThatIsNotThere) {
  const Folder folder;
  write_safetensors(folder.path("a"), one_of_each_type());
  const SafetensorsFile file(folder.path("a"));
  EXPECT_THAT(error_of([&] { file.tensor("flaots"); }),
              HasSubstr("'flaots'; did you mean 'floats'"));
}

TEST(SafetensorsFile, ThatIsCutWhileItIsOpenIsRefused) {
  const Folder folder;
  write_safetensors(folder.path("a"), one_of_each_type());
  const SafetensorsFile file(folder.path("a"));
  std::filesystem::resize_file(folder.path("a"), file.file().size() - 1);
  EXPECT_THAT(error_of([&] { file.read(file.tensors().back()); }), HasSubstr("truncated"));
}

TEST(SafetensorsFile, ThatCannotBeReadIsNamed) {
  EXPECT_THAT(error_of([] { SafetensorsFile("/nowhere/a"); }), HasSubstr("/nowhere/a: No such"));
  EXPECT_THAT(error_of([] { SafetensorsFile("/dev/null"); }), HasSubstr("it is no file"));
  EXPECT_THAT(error_of([] { SafetensorsFile("/tmp"); }), HasSubstr("it is no file"));
}

struct Bad {
  std::string name, json, data, says;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

class BadSafetensors : public ::testing::TestWithParam<Bad> {};

TEST_P(BadSafetensors, IsRefusedNamingTheFileAndTheTensor) {
  const Folder folder;
  const std::string path = folder.write("bad", safetensors_bytes(GetParam().json, GetParam().data));
  const std::string error = error_of([&] {
    const SafetensorsFile file(path);
    for (const StoredTensor& tensor : file.tensors()) file.read(tensor);
  });
  EXPECT_THAT(error, StartsWith(path));
  EXPECT_THAT(error, HasSubstr(GetParam().says));
}

constexpr const char* kX = R"("x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";

INSTANTIATE_TEST_SUITE_P(
    Files, BadSafetensors,
    ::testing::Values(
        Bad{"no_json", "{", "", "line 1, column 2"}, Bad{"no_object", "[]", "", "no JSON object"},
        Bad{"not_utf8", "{\"\xff\":1}", "", "no JSON"},
        Bad{"deep", R"({"x":{"shape":[[[[1]]]]}})", "", "deep"},
        Bad{"tensor_no_object", R"({"x":1})", "", "'x': no \"dtype\""},
        Bad{"no_shape", R"({"x":{"dtype":"U8","data_offsets":[0,2]}})", "ab", "no \"shape\""},
        Bad{"no_offsets", R"({"x":{"dtype":"U8","shape":[2]}})", "ab", "no \"data_offsets\""},
        Bad{"one_offset", R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[2]}})", "ab",
            "not two numbers"},
        Bad{"unknown_dtype", R"({"x":{"dtype":"F7","shape":[2],"data_offsets":[0,2]}})", "ab",
            "'x': dtype 'F7'"},
        Bad{"dtype_no_text", R"({"x":{"dtype":5,"shape":[2],"data_offsets":[0,2]}})", "ab",
            "a text is expected"},
        Bad{"negative_dimension", R"({"x":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", "ab",
            "'x', shape: a whole number"},
        Bad{"fraction", R"({"x":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}})", "ab",
            "'x', shape: a whole number"},
        Bad{"rank_nine", R"({"x":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,2]}})",
            "ab", "9 dimensions"},
        Bad{"overflow",
            R"({"x":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,2]}})", "ab",
            "'x'"},
        Bad{"bytes_overflow",
            R"({"x":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", "",
            "does not take the 0 bytes"},
        Bad{"lying_shape", R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", "ab",
            "does not take the 2 bytes"},
        Bad{"out_of_range", R"({"x":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", "ab",
            "not within the 2 bytes"},
        Bad{"backwards", R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[2,1]}})", "ab",
            "not within"},
        Bad{"huge_offset",
            R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,18446744073709551615]}})", "ab",
            "data_offsets: a whole number"},
        Bad{"overlapping",
            std::string("{") + kX + R"(,"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
            "abc", "'y': overlaps"},
        Bad{"hole",
            std::string("{") + kX + R"(,"y":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
            "abcde", "'y': a hole of 1 bytes"},
        Bad{"hole_at_start", R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "ab",
            "'x': a hole"},
        Bad{"more_data", std::string("{") + kX + "}", "abc", "1 bytes at its end"},
        Bad{"twice", std::string("{") + kX + "," + kX + "}", "ab", "\"x\" is there twice"},
        Bad{"metadata_no_object", R"({"__metadata__":[]})", "", "__metadata__: it is no object"},
        Bad{"metadata_no_text", R"({"__metadata__":{"a":1}})", "", "a text is expected"},
        Bad{"no_bool", R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\x01\x02",
            "'x' is of bool"}),
    [](const auto& info) { return info.param.name; });

TEST(SafetensorsFile, OfAWrongLengthIsRefused) {
  const Folder folder;
  const std::string whole = safetensors_bytes(std::string("{") + kX + "}", "ab");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string path = folder.write("cut", whole.substr(0, length));
    EXPECT_THAT(error_of([&] { SafetensorsFile{path}; }), HasSubstr(path)) << length;
  }
  std::string lying = whole;
  lying[7] = '\x7f';
  folder.write("lying", lying);
  EXPECT_THAT(error_of([&] { SafetensorsFile(folder.path("lying")); }),
              HasSubstr("its header is to take 9151314442816847925 bytes of 63"));
}

TEST(SafetensorsFile, WithoutTensorsIsOne) {
  const Folder folder;
  EXPECT_TRUE(SafetensorsFile(folder.write("a", safetensors_bytes("{}", ""))).tensors().empty());
}

}  // namespace
}  // namespace paceline::testing
