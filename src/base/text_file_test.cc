#include "base/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TextFile, IsWrittenInPlaceOfAnother) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_text_file("the list", path, "first");
  write_text_file("the list", path, "second");
  EXPECT_EQ(text_of(path), "second");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(TextFile, ThatCannotBeWrittenIsNamedWithTheReason) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_text_file("the list", path, "first");
  // What is a folder, and what has no room: /dev/full.
  std::filesystem::create_directory(path + ".part");
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { write_text_file("the list", path, "x"); }),
              HasSubstr("the list " + path + " cannot be written: Is a directory"));
  std::filesystem::remove(path + ".part");
  std::filesystem::create_symlink("/dev/full", path + ".part");
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { write_text_file("the list", path, "x"); }),
              HasSubstr("cannot be written: No space left on device"));
  EXPECT_EQ(text_of(path), "first");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

}  // namespace
}  // namespace paceline
