// Tests that the Debian packages can be made, and that the command runs where only its dependencies
// are installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kPackageTime(250);
constexpr int kMayNot = 77;

bool with_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

TEST(Package, RunsWhereOnlyWhatItDependsOnIsInstalled) {
  if (with_sanitizer()) GTEST_SKIP() << "packages are made from builds without sanitizers";
  Process check({std::string(PACELINE_SOURCE) + "/scripts/check_deb", PACELINE_BUILD});
  const int status = check.wait_exit(kPackageTime);
  if (status == kMayNot) GTEST_SKIP() << check.output();
  ASSERT_EQ(status, 0) << check.output();
  EXPECT_THAT(check.output(), HasSubstr(" global steps ("));
  EXPECT_THAT(check.output(), HasSubstr("runs with only: "));
}

}  // namespace
}  // namespace paceline::testing
