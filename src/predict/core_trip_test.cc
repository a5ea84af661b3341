#include "predict/core_trip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cores.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;

TEST(CoreTripTest, IsTheTimeOfAWordBetweenCores) {
  if (cores_of_machine() < 2) GTEST_SKIP() << "needs two cores";
  constexpr double kLeast = 1e-9, kMost = 0.1;  // seconds, of anything that runs this
  EXPECT_THAT(core_trip_seconds(), AllOf(Gt(kLeast), Lt(kMost)));
}

TEST(CoreTripTest, TellsOnePlacementFromAnother) {
  EXPECT_TRUE(is_same_placement(50e-9, 56e-9));
  EXPECT_FALSE(is_same_placement(50e-9, 150e-9));
  EXPECT_FALSE(is_same_placement(150e-9, 50e-9));
  EXPECT_TRUE(is_same_placement(0, 50e-9)) << "nothing is known of a host with one core";
}

}  // namespace
}  // namespace paceline
