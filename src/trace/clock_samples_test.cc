#include "trace/clock_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace paceline {
namespace {

using namespace std::chrono_literals;

constexpr double kMostDrift = 5e-5;

TimePoint at(Duration time) { return TimePoint(time); }

// Two clocks; the other one is ahead by `offset`, and drifts by `drift`.
struct Clocks {
  Duration offset;
  double drift = 0;

  TimePoint there(TimePoint here) const {
    return here + offset + Duration(std::int64_t(double(here.time_since_epoch().count()) * drift));
  }
  ClockSample trip(TimePoint asked, Duration out, Duration back) const {
    return clock_sample(asked, there(asked + out), asked + out + back);
  }
  // Returns the largest error of the line between the two times.
  Duration error(const ClockLine& line, TimePoint begin, TimePoint end) const {
    const auto off = [&](TimePoint time) {
      return std::chrono::abs(line.there(time) - there(time));
    };
    return std::max(off(begin), off(end));
  }
};

TEST(ClockSamples, ARoundTripBoundsTheOffsetHoweverItsDelayIsDivided) {
  const Clocks clocks{.offset = -1000s};
  for (const Duration out : {0us, 10us, 55us, 90us, 100us}) {
    const ClockSample sample = clocks.trip(at(5s), out, 100us - out);
    EXPECT_EQ(sample.half, 50us);
    EXPECT_LE(std::chrono::abs(sample.offset + 1000s), sample.half);
  }
  EXPECT_EQ(clocks.trip(at(5s), 50us, 50us).offset, -1000s);
}

TEST(ClockSamples, TheBestOfManyIsKept) {
  ClockSamples samples;
  for (int i = 0; i < 10'000; ++i) {
    samples.add({at(i * 1ms), Duration(), i == 4321 ? 3us : 100us + i * 1ns});
  }
  EXPECT_LE(samples.all().size(), ClockSamples::kMost);
  EXPECT_EQ(std::ranges::min(samples.all(), {}, &ClockSample::half).at, at(4321ms));
  EXPECT_TRUE(std::ranges::is_sorted(samples.all(), {}, &ClockSample::at));
}

TEST(ClockEstimate, OneRoundTripIsEnough) {
  const Clocks clocks{.offset = 7ms};
  const ClockSample sample = clocks.trip(at(1s), 30us, 10us);
  const ClockLine line = estimate_clock({&sample, 1}, at(0s), at(10s), 0);
  EXPECT_EQ(line.uncertainty, 20us);
  EXPECT_LE(clocks.error(line, at(0s), at(10s)), line.uncertainty);
  EXPECT_NEAR(double(estimate_clock({&sample, 1}, at(0s), at(11s), kMostDrift).uncertainty.count()),
              520e3, 2);
}

TEST(ClockEstimate, LateAnswersDoNotMatter) {
  const Clocks clocks{.offset = 3s};
  std::vector<ClockSample> samples;
  samples.reserve(64);
  for (int i = 0; i < 40; ++i) {
    samples.push_back(clocks.trip(at(i * 10ms), 12us, i % 7 == 0 ? 9us : 80ms));
  }
  const ClockLine line = estimate_clock(samples, at(0s), at(400ms), 0);
  EXPECT_LE(line.uncertainty, 11us);
  EXPECT_LE(clocks.error(line, at(0s), at(400ms)), line.uncertainty);
}

TEST(ClockEstimate, AClockThatDriftsIsFollowed) {
  const Clocks clocks{.offset = -2ms, .drift = 1e-4};
  std::mt19937 random(3);
  std::uniform_int_distribution<int> delay(5'000, 400'000);
  std::vector<ClockSample> samples;
  samples.reserve(64);
  for (int i = 0; i < 60; ++i) {
    samples.push_back(clocks.trip(at(i * 2s), Duration(delay(random)), Duration(delay(random))));
  }
  const ClockLine line = estimate_clock(samples, at(20s), at(100s), kMostDrift);
  EXPECT_NEAR(line.drift, 1e-4, 1e-5);
  EXPECT_LE(line.uncertainty, 1ms);
  EXPECT_LE(clocks.error(line, at(20s), at(100s)), line.uncertainty);
}

TEST(ClockEstimate, ClocksWithRandomDelaysAreWithinTheUncertainty) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 200; ++turn) {
    std::uniform_int_distribution<int> delay(1'000, 1'000'000), drift(-50, 50);
    const Clocks clocks{.offset = Duration(delay(random)), .drift = drift(random) * 1e-6};
    std::vector<ClockSample> samples;
    samples.reserve(64);
    for (int i = 0; i <= 30; ++i) {
      samples.push_back(clocks.trip(at(i * 1s), Duration(delay(random)), Duration(delay(random))));
    }
    const ClockLine line = estimate_clock(samples, at(5s), at(25s), kMostDrift);
    EXPECT_LE(clocks.error(line, at(5s), at(25s)), line.uncertainty + 2us) << turn;
  }
}

TEST(ClockLine, GoesBackAndOn) {
  const ClockLine line{.at = at(10s), .offset = 4s, .drift = 1e-4, .uncertainty = 3us};
  const TimePoint here = at(30s);
  EXPECT_EQ(line.there(here), at(34s + 2ms));
  EXPECT_LE(std::chrono::abs(line.inverse().there(line.there(here)) - here), 2ns);
  const ClockLine next{.at = at(1s), .offset = -7s, .drift = -2e-4, .uncertainty = 4us};
  const ClockLine both = line.then(next);
  EXPECT_EQ(both.uncertainty, 7us);
  EXPECT_LE(std::chrono::abs(both.there(here) - next.there(line.there(here))), 2ns);
}

}  // namespace
}  // namespace paceline
