#include "base/nearest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline {
namespace {

TEST(Nearest, EditDistanceCountsEachKindOfSlipOnce) {
  EXPECT_EQ(edit_distance("matmul", "matmul"), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("mtmul", "matmul"), 1U);
  EXPECT_EQ(edit_distance("matmuul", "matmul"), 1U);
  EXPECT_EQ(edit_distance("matnul", "matmul"), 1U);
  EXPECT_EQ(edit_distance("amtmul", "matmul"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ReLU", "relu"), 0U);
}

TEST(Nearest, FindsTheClosestAndTheFirstOfEquals) {
  const std::vector<std::string> words = {"adam", "adagrad", "sgd"};
  EXPECT_EQ(nearest("adan", words), "adam");
  EXPECT_EQ(nearest("sdg", words), "sgd");
  EXPECT_EQ(nearest("x", std::set<std::string>{"a", "b"}), "a");
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), "");
}

TEST(Nearest, ProposesOnlyWhatResembles) {
  const std::vector<std::string> words = {"--workers", "--steps"};
  EXPECT_EQ(did_you_mean("--worker", words), "; did you mean '--workers'?");
  EXPECT_EQ(did_you_mean("banana", words), "");
  EXPECT_EQ(did_you_mean("xyp", std::vector<std::string>{"ssp"}), "");
  EXPECT_EQ(did_you_mean("gpus", std::vector<std::string>{"cpu"}), "");
  EXPECT_EQ(did_you_mean("snyc", std::vector<std::string>{"sync"}), "; did you mean 'sync'?");
  EXPECT_EQ(did_you_mean("--epochs", std::vector<std::string>{"--batch", "--hidden"}), "");
  EXPECT_EQ(did_you_mean("banana", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace paceline
