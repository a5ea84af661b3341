#include "base/clock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/deadline.h"

namespace paceline {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(ManualClock, MovesOnlyWhenToldTo) {
  ManualClock clock;
  const TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(milliseconds(5));
  EXPECT_EQ(clock.now() - start, milliseconds(5));
}

TEST(ManualClock, SleepingAdvancesItButNeverBack) {
  ManualClock clock;
  const TimePoint start = clock.now();
  clock.sleep_until(start + milliseconds(7));
  EXPECT_EQ(clock.now() - start, milliseconds(7));
  clock.sleep_until(start + milliseconds(3));
  EXPECT_EQ(clock.now() - start, milliseconds(7));
}

TEST(ManualClock, ManyThreadsAdvanceItByTheirSum) {
  ManualClock clock;
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) clock.advance(milliseconds(1));
    });
  }
  threads.clear();
  EXPECT_EQ(clock.now().time_since_epoch(), milliseconds(4000));
}

TEST(RealClock, SleepsAtLeastUntilTheTime) {
  RealClock clock;
  const TimePoint end = clock.now() + milliseconds(2);
  clock.sleep_until(end);
  EXPECT_GE(clock.now(), end);
}

TEST(Deadline, PassesWithTheRealClock) {
  EXPECT_TRUE(Deadline::after(Duration(0)).passed());
  EXPECT_FALSE(Deadline::after(hours(1)).passed());
  EXPECT_GT(Deadline::after(hours(1)).left(), milliseconds(59 * 60 * 1000));
  const TimePoint time = RealClock().now();
  EXPECT_EQ(Deadline::at(time).time(), time);
}

}  // namespace
}  // namespace paceline
