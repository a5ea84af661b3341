// Every reader of foreign bytes returns from every file of its corpus.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

TEST(FuzzCorpus, EveryReaderReturns) {
  for (const FuzzTarget& target : kFuzzTargets) {
    int count = 0;
    const std::filesystem::path folder =
        std::filesystem::path(PACELINE_SOURCE "/tests/fuzz/corpus") / target.name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path());
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(file), {});
      EXPECT_NO_THROW(
          target.run({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
      ++count;
    }
    EXPECT_GT(count, 0) << target.name;
  }
}

}  // namespace
}  // namespace paceline::testing
