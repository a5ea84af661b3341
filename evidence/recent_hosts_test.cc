#include "evidence/recent_hosts.h"

#include <gtest/gtest.h>

namespace paceline::bench {
namespace {

constexpr double kNear = 50e-9, kFar = 150e-9;

/// A machine that becomes faster: each measurement finds a rate that is higher by 1.
class RecentHostsTest : public ::testing::Test {
 protected:
  PredictedHost next() {
    PredictedHost host{.name = "this machine", .rule_bytes_per_s = rate_, .core_trip_s = trip_};
    ++measured_;
    rate_ += 1;
    return host;
  }

  double rate_ = 1, trip_ = kNear;
  int measured_ = 0;
  RecentHosts hosts_{[this] { return next(); }};
};

TEST_F(RecentHostsTest, MeasuresFiveTimesAtFirstAndThenOnce) {
  EXPECT_EQ(hosts_.usual().rule_bytes_per_s, 3);
  EXPECT_EQ(measured_, 5);
  hosts_.usual();
  EXPECT_EQ(measured_, 6);
}

TEST_F(RecentHostsTest, HasTheMedianOfTheLastNine) {
  for (int i = 0; i < 20; ++i) hosts_.usual();
  EXPECT_EQ(measured_, 24);
  EXPECT_EQ(hosts_.usual().rule_bytes_per_s, 21) << "of 17 to 25";
}

TEST_F(RecentHostsTest, KeepsWhatItKnowsOfEachPlacementOfTheCores) {
  hosts_.usual();
  trip_ = kFar;
  rate_ = 100;
  EXPECT_EQ(hosts_.usual().rule_bytes_per_s, 102);
  trip_ = kNear;
  rate_ = 6;
  EXPECT_EQ(hosts_.usual().rule_bytes_per_s, 4) << "of 1 to 6, the upper of the two in the middle";
  EXPECT_EQ(measured_, 11);
}

}  // namespace
}  // namespace paceline::bench
