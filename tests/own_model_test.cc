// examples/own_model is a project of its own: it is built against an installed Paceline, and runs
// alone and as a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kBuildTime(200), kRunTime(60);

bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

std::string output_of(const std::vector<std::string>& words, std::chrono::seconds within) {
  Process process(words);
  EXPECT_EQ(process.wait_exit(within), 0) << process.output();
  return process.output();
}

TEST(OwnModel, IsBuiltAgainstAnInstalledPrefixAndTrains) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string prefix = folder.path("prefix"), build = folder.path("build");
  output_of({"cmake", "--install", PACELINE_BUILD, "--prefix", prefix}, kBuildTime);
  output_of({"cmake", "-G", "Ninja", "-S", std::string(PACELINE_SOURCE) + "/examples/own_model",
             "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix},
            kBuildTime);
  output_of({"cmake", "--build", build}, kBuildTime);

  const std::string program = build + "/own_model";
  EXPECT_THAT(output_of({program, "--steps", "50"}, kRunTime), HasSubstr("50 global steps"));
  const std::string cluster =
      output_of({program, "--ps", "1", "--workers", "2", "--steps", "50"}, kRunTime);
  EXPECT_THAT(cluster, HasSubstr("steps/s"));
  EXPECT_THAT(cluster, HasSubstr(" global steps ("));
}

}  // namespace
}  // namespace paceline::testing
