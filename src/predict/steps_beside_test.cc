#include "predict/steps_beside.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

TEST(StepsBesideTest, KnowsNothingBeforeCopiesHaveRun) {
  const StepsBeside beside(0.5);
  EXPECT_TRUE(beside.empty());
  EXPECT_EQ(beside.most(), 1);
  EXPECT_EQ(beside.slowdown(4), 1);
  EXPECT_EQ(beside.text(), "");
}

TEST(StepsBesideTest, AStepBetweenTwoNumbersOfCopiesTakesTheTimeBetween) {
  StepsBeside beside(1);
  beside.add(std::vector<StepPace>(8, StepPace{3.5, 0.5}));
  beside.add(std::vector<StepPace>{{1.4, 1}, {1.6, 0.8}});
  EXPECT_EQ(beside.most(), 8);
  EXPECT_DOUBLE_EQ(beside.slowdown(1), 1);
  EXPECT_DOUBLE_EQ(beside.slowdown(2), 1.5);
  EXPECT_DOUBLE_EQ(beside.slowdown(5), 2.5) << "in the middle";
  EXPECT_DOUBLE_EQ(beside.slowdown(8), 3.5);
  EXPECT_DOUBLE_EQ(beside.slowdown(20), 3.5) << "beyond the largest number it grows no more";
  EXPECT_DOUBLE_EQ(beside.busy_cores(2), 0.9);
  EXPECT_DOUBLE_EQ(beside.busy_cores(5), 0.7);
  EXPECT_DOUBLE_EQ(beside.busy_cores(20), 0.5);
}

TEST(StepsBesideTest, BetweenOneAndTheFirstNumberOfCopiesTheTimeGrowsFromThatAlone) {
  StepsBeside beside(2);
  beside.add(std::vector<StepPace>(3, StepPace{4, 1}));
  EXPECT_DOUBLE_EQ(beside.slowdown(2), 1.5);
  EXPECT_DOUBLE_EQ(beside.busy_cores(2), 1);
}

TEST(StepsBesideTest, SaysWhatAllCopiesMadeTogether) {
  StepsBeside beside(1 / 1.3);
  beside.add(std::vector<StepPace>{{1 / 1.04, 1}, {1 / 1.0, 1}});
  EXPECT_EQ(beside.text(), "2 copies at once: 2.04 steps/s together, 1.3 alone\n");
}

}  // namespace
}  // namespace paceline
