#include "params/interval_timer.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(IntervalTimer, IsDueAtMultiplesOfItsStepsOrJustAfterOne) {
  const TimePoint now = ManualClock().now();
  IntervalTimer timer(10, now);
  timer.begin(7, now);
  EXPECT_FALSE(timer.at(9, now));
  EXPECT_TRUE(timer.at(10, now));
  timer.begin(12, now);
  EXPECT_FALSE(timer.at(19, now));
  EXPECT_TRUE(timer.at(23, now));
}

TEST(IntervalTimer, IsDueOnceItsSecondsHavePassed) {
  ManualClock clock;
  IntervalTimer timer(seconds(30), clock.now());
  clock.advance(seconds(30) - milliseconds(1));
  EXPECT_FALSE(timer.at(1000, clock.now()));
  clock.advance(milliseconds(1));
  EXPECT_TRUE(timer.at(1000, clock.now()));
  timer.begin(1000, clock.now());
  EXPECT_FALSE(timer.at(2000, clock.now()));
  clock.advance(seconds(31));
  EXPECT_TRUE(timer.at(2000, clock.now()));
}

TEST(IntervalTimer, IsNeverDueWithoutAnInterval) {
  ManualClock clock;
  const IntervalTimer timer(Interval(), clock.now());
  clock.advance(std::chrono::hours(1));
  EXPECT_FALSE(timer.at(1 << 20, clock.now()));
}

}  // namespace
}  // namespace paceline
