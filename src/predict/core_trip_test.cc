#include "predict/core_trip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cores.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::Gt;
using ::testing::Lt;

TEST(CoreTripTest, IsTheTimeOfAWordBetweenCores) {
  if (usable_cores() < 2) GTEST_SKIP() << "needs two cores";
  // Seconds on any machine that runs this; while others keep the cores busy, the trip is unknown.
  constexpr double kLeast = 1e-9, kMost = 2e-6;
  EXPECT_THAT(core_trip_seconds(), AnyOf(Eq(0), AllOf(Gt(kLeast), Lt(kMost))));
}

TEST(CoreTripTest, TellsOnePlacementFromAnother) {
  EXPECT_TRUE(is_same_placement(50e-9, 56e-9));
  EXPECT_FALSE(is_same_placement(50e-9, 150e-9));
  EXPECT_FALSE(is_same_placement(150e-9, 50e-9));
  EXPECT_TRUE(is_same_placement(0, 50e-9))
      << "nothing is known of a host with one core, or a busy one";
}

}  // namespace
}  // namespace paceline
