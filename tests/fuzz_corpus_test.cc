// Tests that every reader of foreign bytes returns for every file of its corpus.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/ps_seeds.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(FuzzCorpus, EveryReaderReturns) {
  for (const FuzzTarget& target : kFuzzTargets) {
    int count = 0;
    const std::filesystem::path folder =
        std::filesystem::path(PACELINE_SOURCE "/tests/fuzz/corpus") / target.name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path());
      const std::string bytes = file_content(entry.path());
      EXPECT_NO_THROW(
          target.run({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
      ++count;
    }
    EXPECT_GT(count, 0) << target.name;
  }
}

// If PACELINE_WRITE_SEEDS is set, writes the scripts anew. A change of the messages requires this.
TEST(FuzzCorpus, ScriptsForAPsReachWhatTheyAreFor) {
  for (const PsSeed& seed : ps_seeds()) {
    SCOPED_TRACE(seed.name);
    const std::vector<std::uint8_t>& bytes = seed.script.bytes();
    const std::string path = PACELINE_SOURCE "/tests/fuzz/corpus/ps/" + seed.name;
    const std::string content(bytes.begin(), bytes.end());
    if (std::getenv("PACELINE_WRITE_SEEDS") != nullptr) {
      std::ofstream(path, std::ios::binary) << content;
    }
    EXPECT_EQ(file_content(path), content) << "write the seeds anew";
    const PsEnd end = play_ps_script(bytes);
    EXPECT_EQ(end.applied, seed.applied) << end.warnings;
    EXPECT_THAT(end.said, IsSupersetOf(seed.said)) << end.warnings;
    EXPECT_THAT(end.warnings, HasSubstr(seed.warning));
    if (!seed.warning.empty()) continue;
    EXPECT_THAT(end.warnings, Not(HasSubstr("refused")));
  }
}

}  // namespace
}  // namespace paceline::testing
