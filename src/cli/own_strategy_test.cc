// Tests that flags can ask for a strategy that a program adds.
#include <gtest/gtest.h>

#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "paceline/error.h"
#include "paceline/program.h"
#include "params/strategy/strategies.h"
#include "train/testing/averaging_strategy.h"

namespace paceline {
namespace {

TEST(OwnStrategy, IsReadFromFlagsThatItLeavesOpen) {
  const AddedStrategy added(kAveraging);
  const auto read = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--ps", "1", "--workers", "2", "--strategy", "averaging"};
    words.insert(words.end(), more.begin(), more.end());
    return read_cluster(
        *parse({.name = "program", .about = "", .examples = "", .flags = cluster_flags()}, words));
  };
  EXPECT_EQ(read({"--local-steps", "4"}).strategy.local_steps, 4);
  EXPECT_EQ(batches_of_step(read({})), 1) << "each of its steps counts";
  EXPECT_THROW(read({"--outer-rate", "2"}), Error) << "it has a rate of its own";
  EXPECT_THROW(read({"--staleness", "2"}), Error);
}

}  // namespace
}  // namespace paceline
