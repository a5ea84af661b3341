#include "net/tls/secret_key.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Tests the permissions with which Kubernetes mounts a Secret with fsGroup.
TEST_F(KeyFile, OfRootMayBeReadByAGroupAndByNobodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  constexpr gid_t kGroup = 12345, kOther = 12346;
  constexpr uid_t kUser = 12347;
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const auto is_read = [&](mode_t mode, gid_t group) {
    const std::string path = write(SecretKey::make().text());
    EXPECT_EQ(::chown(path.c_str(), 0, kGroup), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const bool became =
          ::setgroups(1, &group) == 0 && ::setgid(group) == 0 && ::setuid(kUser) == 0;
      ::_exit(became && error_of([&] { SecretKey::read(path); }).empty() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(::unlink(path.c_str()), 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  EXPECT_TRUE(is_read(0440, kGroup));
  EXPECT_FALSE(is_read(0440, kOther));
  EXPECT_FALSE(is_read(0460, kGroup));
  EXPECT_FALSE(is_read(0444, kGroup));
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
