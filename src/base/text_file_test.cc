#include "base/text_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>

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

TEST(TextFile, BehindALinkIsReplacedAndNotTheLink) {
  const TemporaryFolder folder;
  write_text_file("the list", folder.path("file"), "first");
  std::filesystem::create_symlink(folder.path("file"), folder.path("link"));
  write_text_file("the list", folder.path("link"), "second");
  EXPECT_EQ(text_of(folder.path("file")), "second");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
}

TEST(TextFile, OfAPipeGoesThroughIt) {
  const TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), S_IRUSR | S_IWUSR), 0);
  auto reader = std::async(std::launch::async, [&] { return text_of(path); });
  write_text_file("the list", path, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  EXPECT_EQ(reader.get(), "through");
}

TEST(TextFile, BehindALinkThatLeadsNowhereIsMadeThere) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("file", folder.path("link"));
  write_text_file("the list", folder.path("link"), "first");
  EXPECT_EQ(text_of(folder.path("file")), "first");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
}

TEST(TextFile, OfADescriptorFollowsWhatWasWrittenToIt) {
  const TemporaryFolder folder;
  const int file = ::open(folder.path("file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::write(file, "before ", 7), 7);
  const std::string descriptor = "/dev/fd/" + std::to_string(file);
  std::filesystem::create_symlink(descriptor, folder.path("link"));
  EXPECT_TRUE(is_written_through(descriptor));
  write_text_file("the list", descriptor, "and ");
  write_text_file("the list", folder.path("link"), "after");
  EXPECT_EQ(text_of(folder.path("file")), "before and after");
  ::close(file);
}

TEST(TextFile, ThatCannotBeWrittenIsNamedWithTheReason) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_text_file("the list", path, "first");
  // A folder takes the place of the first path's .part file, and the second path, /dev/full, has no
  // room.
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
