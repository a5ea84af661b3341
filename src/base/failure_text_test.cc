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
}

TEST(FailureText, RepeatsNoWordOfTheJsonLibrary) {
  const auto text_of = [](const std::string& what) {
    return failure_text(std::runtime_error("[json.exception." + what));
  };
  EXPECT_EQ(text_of("parse_error.101] parse error at line 2, column 5: syntax error while parsing"),
            "no JSON at line 2, column 5");
  EXPECT_EQ(text_of("out_of_range.406] number overflow parsing '1e999'"), "a number is too large");
  EXPECT_EQ(text_of("type_error.304] cannot use at() with array"),
            "the JSON has another form than expected");
}

TEST(FailureText, LeavesOtherMessagesAsTheyAre) {
  EXPECT_EQ(failure_text(Error(ErrorCode::kUsage, "--steps 0: no")), "--steps 0: no");
  EXPECT_EQ(failure_text(std::runtime_error("[x] y")), "[x] y");
}

}  // namespace
}  // namespace paceline
