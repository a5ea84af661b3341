#include "paceline/rule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "paceline/error.h"

namespace paceline {
namespace {

TEST(Schedule, IsOneByDefaultAndConstantWhenAsked) {
  EXPECT_EQ(Schedule().at(0), 1);
  EXPECT_EQ(Schedule().at(1'000'000), 1);
  EXPECT_EQ(Schedule::constant(0.25).at(7), 0.25);
}

TEST(Schedule, ExponentialFallsSmoothlyAndStaircaseInSteps) {
  EXPECT_DOUBLE_EQ(Schedule::exponential(0.5, 10).at(5), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(Schedule::exponential(0.5, 10).at(20), 0.25);
  const Schedule staircase = Schedule::staircase(0.5, 10);
  EXPECT_EQ(staircase.at(9), 1);
  EXPECT_EQ(staircase.at(10), 0.5);
  EXPECT_EQ(staircase.at(29), 0.25);
}

TEST(Schedule, PiecewiseChangesAtItsBoundaries) {
  const Schedule schedule = Schedule::piecewise({40000, 60000}, {1, 0.1, 0.01});
  EXPECT_EQ(schedule.at(0), 1);
  EXPECT_EQ(schedule.at(39999), 1);
  EXPECT_EQ(schedule.at(40000), 0.1);
  EXPECT_EQ(schedule.at(59999), 0.1);
  EXPECT_EQ(schedule.at(60000), 0.01);
  EXPECT_EQ(Schedule::piecewise({}, {3}).at(5), 3);
}

TEST(Schedule, PolynomialEndsAtItsEnd) {
  const Schedule schedule = Schedule::polynomial(100, 0.2, 2);
  EXPECT_EQ(schedule.at(0), 1);
  EXPECT_DOUBLE_EQ(schedule.at(50), 0.8 * 0.25 + 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 0.2);
}

TEST(Schedule, CosineIsHalfWayInTheMiddle) {
  const Schedule schedule = Schedule::cosine(100, 0.1);
  EXPECT_EQ(schedule.at(0), 1);
  EXPECT_NEAR(schedule.at(50), 0.55, 1e-12);
  EXPECT_NEAR(schedule.at(100), 0.1, 1e-12);
  EXPECT_NEAR(schedule.at(500), 0.1, 1e-12);
}

TEST(Schedule, WarmsUpThenCountsFromThere) {
  const Schedule schedule = Schedule::warm_up(4, Schedule::staircase(0.5, 10));
  EXPECT_EQ(schedule.at(0), 0.25);
  EXPECT_EQ(schedule.at(3), 1);
  EXPECT_EQ(schedule.at(4), 1);
  EXPECT_EQ(schedule.at(13), 1);
  EXPECT_EQ(schedule.at(14), 0.5);
}

TEST(Schedule, RefusesWhatCannotBe) {
  EXPECT_THROW(Schedule::exponential(0.5, 0), Error);
  EXPECT_THROW(Schedule::staircase(0.5, -1), Error);
  EXPECT_THROW(Schedule::polynomial(0, 0, 1), Error);
  EXPECT_THROW(Schedule::cosine(0), Error);
  EXPECT_THROW(Schedule::warm_up(0, {}), Error);
  EXPECT_THROW(Schedule::piecewise({1}, {1}), Error);
  EXPECT_THROW(Schedule::piecewise({5, 5}, {1, 2, 3}), Error);
}

}  // namespace
}  // namespace paceline
