#include "tests/examples.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace paceline::testing {

using ::testing::HasSubstr;

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

std::string built_example(const std::string& name, const TemporaryFolder& folder) {
  const std::string prefix = folder.path("prefix"), build = folder.path("build");
  output_of({"cmake", "--install", PACELINE_BUILD, "--prefix", prefix}, kBuildTime);
  const std::string source = fmt::format("{}/examples/{}", PACELINE_SOURCE, name);
  output_of({"cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix},
            kBuildTime);
  output_of({"cmake", "--build", build}, kBuildTime);
  // The commands above name no build type, as in the README, and yet the build must be optimised.
  std::ifstream commands(build + "/build.ninja");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(commands), {}), HasSubstr("-O3 -DNDEBUG"));
  return build + "/" + name;
}

}  // namespace paceline::testing
