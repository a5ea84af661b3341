#include "base/failure_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "paceline/error.h"

namespace paceline {
namespace {

TEST(FailureText, PutsExceptionsOfLibrariesInWords) {
  EXPECT_EQ(failure_text(std::bad_alloc()), "not enough memory for what was asked");
  const auto denied = std::make_error_code(std::errc::permission_denied);
  using FileError = std::filesystem::filesystem_error;
  EXPECT_EQ(failure_text(FileError("cannot get status", "/a/b", denied)),
            "/a/b: Permission denied");
  EXPECT_EQ(failure_text(FileError("cannot copy", "/a", "/b", denied)),
            "/a and /b: Permission denied");
  EXPECT_EQ(failure_text(std::system_error(denied, "mutex")),
            "the system refused: Permission denied");
  EXPECT_EQ(failure_text(std::runtime_error("[json.exception.type_error.302] type must be text")),
            "type must be text");
}

TEST(FailureText, LeavesOtherMessagesAsTheyAre) {
  EXPECT_EQ(failure_text(Error(ErrorCode::kUsage, "--steps 0: no")), "--steps 0: no");
  EXPECT_EQ(failure_text(std::runtime_error("[x] y")), "[x] y");
}

}  // namespace
}  // namespace paceline
