// Tests that --dry-run describes a job and starts nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string dry_run(std::vector<std::string> words) {
  words.insert(words.begin(), "train");
  words.emplace_back("--dry-run");
  const Finished run = run_paceline(words, std::chrono::seconds(60));
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("nothing is started"));
  return run.output;
}

TEST(DryRun, OfMlpIsThatOfTheWorkload) {
  const std::string text = dry_run({"mlp", "--ps", "1", "--workers", "4"});
  EXPECT_THAT(text, HasSubstr("1 ps + 4 workers on this machine"));
  EXPECT_THAT(text,
              HasSubstr("18,882,816 parameters in 6 variables: 75.5 MB, slots 151 MB (adam)"));
  EXPECT_THAT(text, HasSubstr("ps:0 keeps 75.5 MB"));
  EXPECT_THAT(text, HasSubstr("14.2 GFLOP in "));
  EXPECT_THAT(text, HasSubstr("75.5 MB of values are received, 75.5 MB of contributions are sent"));
}

TEST(DryRun, AloneNothingIsOnLinks) {
  const std::string text = dry_run({"mlp", "--hidden", "32"});
  EXPECT_THAT(text, HasSubstr("Alone: one process"));
  EXPECT_THAT(text, HasSubstr("All variables are in this process."));
  EXPECT_THAT(text, Not(HasSubstr("on links")));
}

// The fused update applies the gradient of layer1/w, 67.1 MB, while it is computed.
TEST(DryRun, AloneCountsWhatTheFusedUpdateLeaves) {
  const std::string fused = dry_run({"mlp", "--threads", "2"});
  EXPECT_THAT(fused, HasSubstr("its update reads and writes 462 MB"));
  EXPECT_THAT(fused, HasSubstr("gradients 8.4 MB"));
  const std::string whole = dry_run({"mlp", "--threads", "2", "--no-fused-update"});
  EXPECT_THAT(whole, HasSubstr("its update reads and writes 529 MB"));
  EXPECT_THAT(whole, HasSubstr("gradients 75.5 MB"));
}

TEST(DryRun, CountsTheReordersOfImages) {
  EXPECT_THAT(dry_run({"resnet", "--depth", "8"}), HasSubstr("between two layouts: 1\n"));
  EXPECT_THAT(dry_run({"cifar10"}), HasSubstr("between two layouts: 3\n"));
  EXPECT_THAT(dry_run({"mlp"}), Not(HasSubstr("layouts")));
}

TEST(DryRun, CountsWhatTheWireRoundsTo) {
  const std::vector<std::string> words = {"mlp", "--ps",   "1",       "--workers",
                                          "1",   "--wire", "bfloat16"};
  EXPECT_THAT(dry_run(words),
              HasSubstr("75.5 MB of values are received, 75.5 MB of contributions are sent;"));
  std::vector<std::string> over_tcp = words;
  over_tcp.insert(over_tcp.end(), {"--link", "tcp"});
  const std::string text = dry_run(over_tcp);
  EXPECT_THAT(text,
              HasSubstr("37.8 MB of values are received, 37.8 MB of contributions are sent\n"));
  EXPECT_THAT(text, HasSubstr("ps:0: 37.8 MB and 37.8 MB"));
}

TEST(DryRun, OfATaskConnectsToNobody) {
  // Nothing listens at these addresses, whose names do not exist.
  const std::string text =
      dry_run({"mlp", "--cluster", "ps=no.invalid:1,no.invalid:2;worker=w.invalid:1", "--task",
               "worker:0"});
  EXPECT_THAT(text, HasSubstr("2 ps + 1 worker, each a process of its own"));
  EXPECT_THAT(text, HasSubstr("w.invalid:1  this task"));
  EXPECT_THAT(text, HasSubstr("    ps:1: "));
}

TEST(DryRun, OfExistingServersPlacesVariablesOnThem) {
  const std::string text = dry_run(
      {"mlp", "--workers", "2", "--ps-hosts", "a.invalid:1,b.invalid:2", "--existing-servers"});
  EXPECT_THAT(text, HasSubstr("2 workers on this machine, with existing servers"));
  EXPECT_THAT(text, HasSubstr("b.invalid:2"));
  EXPECT_THAT(text, HasSubstr("ps:1 keeps "));
}

TEST(DryRun, OfEveryModelPlacesVariablesAsARunDoes) {
  const TemporaryFolder folder;
  const std::string corpus = folder.path("corpus");
  ASSERT_EQ(run_paceline({"data", "corpus", "--out", corpus, "--words", "200000"}).status, 0);
  const std::vector<std::vector<std::string>> models = {
      {"mlp", "--hidden", "32", "--steps", "2"},
      {"ptb", "--size", "test", "--data", corpus, "--steps", "2"},
      {"fetch", "--steps", "2"}};
  for (std::vector<std::string> words : models) {
    words.insert(words.end(), {"--ps", "2", "--workers", "1"});
    const std::string text = dry_run(words);
    words.insert(words.begin(), "train");
    words.emplace_back("--show-placement");
    const Finished run = run_paceline(words, std::chrono::seconds(120));
    ASSERT_EQ(run.status, 0) << run.output;
    std::istringstream lines(run.output);
    int placed = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" bytes on ps:") == std::string::npos) continue;
      EXPECT_THAT(text, HasSubstr(line.substr(line.find("| ") + 2)));
      ++placed;
    }
    EXPECT_GT(placed, 0) << run.output;
  }
}

}  // namespace
}  // namespace paceline::testing
