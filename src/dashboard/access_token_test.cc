#include "dashboard/access_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "base/text_file.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class AccessToken : public ::testing::Test {
 protected:
  std::string file_of(const std::string& text, int mode = 0600) const {
    write_text_file("a token", folder_.path("token"), text);
    std::filesystem::permissions(folder_.path("token"), std::filesystem::perms(mode));
    return folder_.path("token");
  }
  const TemporaryFolder folder_;
};

TEST_F(AccessToken, IsTheLineOfAFileOfItsOwnersAlone) {
  EXPECT_EQ(read_access_token(file_of("abcdefghij-123456\n")), "abcdefghij-123456");
  EXPECT_EQ(read_access_token(file_of(std::string(256, 'a'))), std::string(256, 'a'));
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                       [&] { read_access_token(file_of("abcdefghij-123456\n", 0640)); }),
              HasSubstr("others may read or change the token file " + folder_.path("token")));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { read_access_token(folder_.path("none")); }),
              HasSubstr("cannot be read"));
}

TEST_F(AccessToken, ThatIsGuessedOrWrittenOtherwiseInAnAddressIsRefusedAndNotTold) {
  for (const std::string& text :
       {std::string(), std::string("short"), std::string(257, 'a'),
        std::string("two words of a token"), std::string("abcdefghij-123456\n\n"),
        std::string("abcdefghij&123456")}) {
    const std::string error =
        error_of(ErrorCode::kInvalidArgument, [&] { read_access_token(file_of(text)); });
    EXPECT_THAT(error, AllOf(HasSubstr("16 to 256"), Not(HasSubstr("abcdefghij"))));
  }
}

TEST_F(AccessToken, IsComparedAsAWhole) {
  EXPECT_TRUE(is_same_token("abc", "abc"));
  EXPECT_FALSE(is_same_token("abc", "abd"));
  EXPECT_FALSE(is_same_token("abc", "ab"));
  EXPECT_FALSE(is_same_token("abc", ""));
}

}  // namespace
}  // namespace paceline
