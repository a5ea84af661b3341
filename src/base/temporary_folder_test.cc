#include "base/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace paceline {
namespace {

TEST(TemporaryFolder, IsThereUntilItsObjectIsGone) {
  std::string path;
  {
    const TemporaryFolder folder, other;
    path = folder.path();
    EXPECT_TRUE(std::filesystem::is_directory(path));
    EXPECT_NE(path, other.path());
    std::filesystem::create_directory(folder.path("inner"));
    std::ofstream(folder.path("inner/file")) << "text";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace paceline
