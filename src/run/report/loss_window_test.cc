#include "run/report/loss_window.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline {
namespace {

LossWindows windows_of(int steps, const auto& loss) {
  LossWindows windows;
  for (int i = 0; i < steps; ++i) windows.add(loss(i));
  return windows;
}

TEST(LossWindow, IsOfTheFirstAndTheLastSteps) {
  const LossWindows windows = windows_of(110, [](int step) { return step; });
  EXPECT_EQ(windows.begin()->mean, 9.5);
  EXPECT_EQ(windows.end()->mean, 99.5);
  EXPECT_EQ(windows.end()->steps, 20);
  EXPECT_NEAR(windows.begin()->deviation, 5.916, 1e-3);
  EXPECT_EQ(windows.begin()->deviation, windows.end()->deviation);
}

TEST(LossWindow, NeverOverlapsTheOther) {
  const LossWindows windows = windows_of(13, [](int step) { return step; });
  EXPECT_EQ(windows.begin()->mean, 2.5);
  EXPECT_EQ(windows.end()->mean, 9.5);
  EXPECT_FALSE(windows_of(9, [](int) { return 1; }).begin());
  EXPECT_FALSE(windows_of(9, [](int) { return 1; }).end());
}

TEST(LossWindow, IsAboveAnotherOneBeyondTheirNoise) {
  const LossWindow begin{.mean = 2, .deviation = 0.3, .steps = 20};
  EXPECT_FALSE(is_above({.mean = 2.3, .deviation = 0.3, .steps = 20}, begin));
  EXPECT_TRUE(is_above({.mean = 2.5, .deviation = 0.3, .steps = 20}, begin));
  EXPECT_FALSE(is_above({.mean = 1, .deviation = 0, .steps = 20}, begin));
  EXPECT_TRUE(is_above({.mean = NAN, .deviation = NAN, .steps = 20}, begin));
}

}  // namespace
}  // namespace paceline
