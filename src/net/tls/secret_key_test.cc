#include "net/tls/secret_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeyFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(folder_.path("key")) << text;
    ::chmod(folder_.path("key").c_str(), mode);
    return folder_.path("key");
  }
  const TemporaryFolder folder_;
};

TEST_F(KeyFile, IsReadAsItWasWritten) {
  const SecretKey key = SecretKey::make();
  const SecretKey again = SecretKey::read(write(key.text()));
  EXPECT_TRUE(std::ranges::equal(key.bytes(), again.bytes()));
  EXPECT_EQ(key.fingerprint(), again.fingerprint());
}

TEST_F(KeyFile, IsWrittenForItsOwnerAloneAndNeverOverAnother) {
  const SecretKey key = SecretKey::make();
  key.write_new(folder_.path("new"));
  EXPECT_EQ(SecretKey::read(folder_.path("new")).text(), key.text());
  struct stat state = {};
  ASSERT_EQ(::stat(folder_.path("new").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0600U);
  const SecretKey other = SecretKey::make();
  EXPECT_THAT(error_of(ErrorCode::kUsage, [&] { other.write_new(folder_.path("new")); }),
              HasSubstr("there is a key in " + folder_.path("new") + " already"));
  EXPECT_EQ(SecretKey::read(folder_.path("new")).text(), key.text());
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { other.write_new(folder_.path("no/new")); }),
              HasSubstr(folder_.path("no/new") + " cannot be written"));
}

TEST_F(KeyFile, OfTwoKeysDiffer) {
  EXPECT_NE(SecretKey::make().text(), SecretKey::make().text());
  EXPECT_NE(SecretKey::make().fingerprint(), SecretKey::make().fingerprint());
}

TEST_F(KeyFile, ThatOthersMayReadOrChangeIsRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0601, 0644})
    EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                         [&] { SecretKey::read(write(SecretKey::make().text(), mode)); }),
                HasSubstr("chmod 600 " + folder_.path("key")));
}

TEST_F(KeyFile, ThatIsNoKeyIsRefusedAndNotTold) {
  const std::string good = SecretKey::make().text();
  std::string other = good;
  other[40] = 'g';
  for (const std::string& text : {std::string(), std::string("secret"), good + "x", good + "\n",
                                  good.substr(0, 60), other, std::string(1 << 20, 'a')}) {
    const std::string error =
        error_of(ErrorCode::kInvalidArgument, [&] { SecretKey::read(write(text)); });
    EXPECT_THAT(error, HasSubstr(folder_.path("key")));
    if (text.size() <= 20) continue;
    EXPECT_THAT(error, Not(HasSubstr(text.substr(15, 20))));
  }
}

TEST_F(KeyFile, ThatIsMissingIsNamedWithTheCommandThatMakesOne) {
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { SecretKey::read(folder_.path("none")); }),
              AllOf(HasSubstr(folder_.path("none")), HasSubstr("`paceline key`")));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { SecretKey::read(folder_.path("")); }),
              HasSubstr("is a folder"));
}

}  // namespace
}  // namespace paceline
