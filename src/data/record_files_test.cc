#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/data.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr RecordFormat kTiny = {.label_bytes = 1, .size = {1, 2, 3}, .classes = 10};

class RecordFilesTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_.path(name), std::ios::binary) << bytes;
    return folder_.path(name);
  }
  const TemporaryFolder folder_;
};

TEST_F(RecordFilesTest, GivesRecordsOfAllFilesByIndex) {
  const auto source = record_files({write("a", "\1abcdef\2ghijkl"), write("b", "\3mnopqr")}, kTiny);
  EXPECT_THAT(source->files(), ElementsAre(2, 1));
  Example example;
  source->read(2, example);
  EXPECT_EQ(example.label, 3);
  EXPECT_THAT(example.bytes, ElementsAre('m', 'n', 'o', 'p', 'q', 'r'));
  EXPECT_EQ(example.size, kTiny.size);
  source->read(1, example);
  EXPECT_EQ(example.label, 2);
  EXPECT_THAT(source->name(2), EndsWith("/b, record 0"));
}

TEST_F(RecordFilesTest, TakesTheLastLabelByteAsTheLabel) {
  RecordFormat two = kTiny;
  two.label_bytes = 2;
  const auto source = record_files({write("a", "\7\1abcdef")}, two);
  Example example;
  source->read(0, example);
  EXPECT_EQ(example.label, 1);
}

TEST_F(RecordFilesTest, NamesAFileThatIsTruncatedOrTooLong) {
  for (const char* bytes : {"\1abcde", "\1abcdefg"}) {
    const std::string message =
        error_of(ErrorCode::kDataLoss, [&] { record_files({write("torn.bin", bytes)}, kTiny); });
    EXPECT_THAT(message, HasSubstr("torn.bin has "));
    EXPECT_THAT(message, HasSubstr("no whole number of records of 7 bytes"));
  }
}

TEST_F(RecordFilesTest, NamesAFileThatIsEmptyOrALinkToNowhere) {
  write("1.bin", "\1abcdef");
  const std::string two = write("2.bin", "");
  EXPECT_THAT(error_of(ErrorCode::kDataLoss,
                       [&] { record_files(files_of(folder_.path(), ".bin"), kTiny); }),
              EndsWith("2.bin is empty"));
  std::filesystem::remove(two);
  std::filesystem::create_symlink("/nowhere.bin", two);
  EXPECT_THAT(error_of(ErrorCode::kNotFound,
                       [&] { record_files(files_of(folder_.path(), ".bin"), kTiny); }),
              HasSubstr("2.bin: No such file"));
}

TEST_F(RecordFilesTest, RefusesNoFileAndFormatsThatCannotBe) {
  error_of(ErrorCode::kInvalidArgument, [&] { record_files({}, kTiny); });
  RecordFormat none = kTiny;
  none.size.height = 0;
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { record_files({write("a", "")}, none); }),
              HasSubstr("0x2 pixels"));
  error_of(ErrorCode::kNotFound, [&] { record_files({folder_.path("nowhere")}, kTiny); });
}

TEST_F(RecordFilesTest, NamesARecordWithALabelOfNoClass) {
  const auto source = record_files({write("a", "\1abcdef\177ghijkl")}, kTiny);
  Example example;
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { source->read(1, example); }),
              HasSubstr("a, record 1 has label 127; labels are below 10"));
}

TEST_F(RecordFilesTest, NamesAFileThatBecameShorter) {
  const std::string path = write("a", "\1abcdef\2ghijkl");
  const auto source = record_files({path}, kTiny);
  std::filesystem::resize_file(path, 7);
  Example example;
  source->read(0, example);
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { source->read(1, example); }),
              HasSubstr("a is truncated"));
}

TEST_F(RecordFilesTest, ReadsAFileThatWasRemovedMeanwhile) {
  const std::string path = write("a", "\1abcdef");
  const auto source = record_files({path}, kTiny);
  std::filesystem::remove(path);
  Example example;
  source->read(0, example);
  EXPECT_EQ(example.label, 1);
}

TEST_F(RecordFilesTest, FindsFilesOfAFolderAFileAndAPattern) {
  const std::string a = write("b1.bin", ""), b = write("a.bin", ""), c = write("c.txt", "");
  std::filesystem::create_directory(folder_.path("d.bin"));
  EXPECT_THAT(files_of(folder_.path(), ".bin"), ElementsAre(b, a));
  EXPECT_THAT(files_of(c, ".bin"), ElementsAre(c));
  EXPECT_THAT(files_of(folder_.path("[bc]*"), ".bin"), ElementsAre(a, c));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { files_of(folder_.path("x*"), ".bin"); }),
              HasSubstr("no file matches"));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { files_of(folder_.path(), ".png"); }),
              HasSubstr("holds no file whose name ends in .png"));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { files_of(folder_.path("x"), ".bin"); }),
              HasSubstr("there is no file or folder"));
}

TEST(ImagesInMemory, GivesImagesWithoutACopy) {
  const auto source = images_in_memory({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {4, 5}, kTiny);
  EXPECT_THAT(source->files(), ElementsAre(2));
  Example example;
  source->read(1, example);
  EXPECT_EQ(example.label, 5);
  EXPECT_THAT(example.bytes, ElementsAre(7, 8, 9, 10, 11, 12));
  EXPECT_TRUE(example.memory.empty());
}

TEST(ImagesInMemory, RefusesWhatDoesNotFit) {
  error_of(ErrorCode::kInvalidArgument, [] { images_in_memory({1, 2, 3}, {0}, kTiny); });
  error_of(ErrorCode::kInvalidArgument, [] { images_in_memory({}, {}, kTiny); });
  error_of(ErrorCode::kInvalidArgument, [] { images_in_memory({1, 2, 3, 4, 5, 6}, {10}, kTiny); });
}

}  // namespace
}  // namespace paceline
