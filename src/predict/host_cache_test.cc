#include "predict/host_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "base/temporary_folder.h"
#include "base/text_file.h"

namespace paceline {
namespace {

PredictedHost passes_at(double rate) {
  return {.name = "this machine", .cores = 2, .flops_per_s = 1000 - rate, .rule_bytes_per_s = rate};
}

TEST(UsualHostTest, HasTheMedianOfEachRate) {
  const std::vector<PredictedHost> measured = {passes_at(70), passes_at(140), passes_at(72)};
  EXPECT_EQ(usual_host(measured).rule_bytes_per_s, 72);
  EXPECT_EQ(usual_host(measured).flops_per_s, 928);
}

TEST(UsualHostTest, DoesNotMixPlacementsOfTheCores) {
  std::vector<PredictedHost> measured = {passes_at(70), passes_at(140), passes_at(150),
                                         passes_at(72), passes_at(76)};
  for (PredictedHost& each : measured)
    each.core_trip_s = each.rule_bytes_per_s < 100 ? 50e-9 : 150e-9;
  EXPECT_EQ(usual_host(measured).rule_bytes_per_s, 72);
}

class HostCacheTest : public ::testing::Test {
 protected:
  /// Returns what the cache gives at the moment `now`, if a measurement would find `rate` while
  /// other programs had `others_share` of the cores.
  SeenHost seen(std::int64_t now, double rate, double others_share, double core_trip_s = 50e-9) {
    return HostCache(path_).usual(now, core_trip_s, [&] {
      ++measured_;
      PredictedHost host = passes_at(rate);
      host.core_trip_s = core_trip_s;
      host.others_share = others_share;
      return host;
    });
  }
  /// Returns the usual rate of rules at the moment `now`, if nothing disturbs a measurement.
  double usual(std::int64_t now, double rate, double core_trip_s = 50e-9) {
    return seen(now, rate, 0, core_trip_s).host.rule_bytes_per_s;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/cache/host.json";
  int measured_ = 0;
};

TEST_F(HostCacheTest, MeasuresOnceInTenMinutes) {
  EXPECT_EQ(usual(10'000, 50), 50);
  EXPECT_EQ(usual(10'599, 70), 50);
  EXPECT_EQ(measured_, 1);
  usual(10'600, 70);
  EXPECT_EQ(measured_, 2);
}

TEST_F(HostCacheTest, OneMeasurementBesideOtherProgramsDoesNotDecide) {
  usual(10'000, 50);
  usual(10'600, 20);
  EXPECT_EQ(usual(11'200, 52), 50);
}

TEST_F(HostCacheTest, MeasuresAnewWhenTheCoresWereMoved) {
  usual(10'000, 50);
  EXPECT_EQ(usual(10'001, 100, 150e-9), 100);
  EXPECT_EQ(usual(10'002, 70), 50) << "they were moved back";
  EXPECT_EQ(usual(10'003, 70, 150e-9), 100);
  EXPECT_EQ(measured_, 2);
}

TEST_F(HostCacheTest, ForgetsWhatWasMeasuredAnHourAgo) {
  usual(10'000, 90);
  EXPECT_EQ(usual(13'600, 50), 50);
  EXPECT_EQ(measured_, 2);
}

TEST_F(HostCacheTest, WhatWasMeasuredBesideOthersIsDiscardedOnceTheyAreGone) {
  const SeenHost busy = seen(10'000, 20, 0.4);
  EXPECT_EQ(busy.host.rule_bytes_per_s, 20);
  EXPECT_EQ(busy.host.others_share, 0.4);
  EXPECT_EQ(busy.discarded, "");
  EXPECT_EQ(HostCache(path_).newest(10'000)->host.others_share, 0.4);
  const SeenHost still = seen(10'010, 25, 0.5);
  EXPECT_EQ(still.host.rule_bytes_per_s, 25) << "the one before it is no measure either";
  EXPECT_EQ(still.discarded, "");
  const SeenHost alone = seen(10'020, 50, 0);
  EXPECT_EQ(alone.host.rule_bytes_per_s, 50);
  EXPECT_EQ(alone.discarded,
            "Discards what this machine was seen to do while other programs had the cores for 50% "
            "of the time: it was measured anew");
  const SeenHost later = seen(10'030, 60, 0);
  EXPECT_EQ(later.host.rule_bytes_per_s, 50);
  EXPECT_EQ(later.discarded, "");
  EXPECT_EQ(measured_, 3);
}

TEST_F(HostCacheTest, PrefersWhatWasMeasuredAloneWithinTheHour) {
  usual(10'000, 50);
  EXPECT_EQ(seen(10'700, 20, 0.4).host.rule_bytes_per_s, 50);
  EXPECT_EQ(seen(13'700, 20, 0.4).host.rule_bytes_per_s, 20) << "that was more than an hour ago";
}

TEST_F(HostCacheTest, AClockThatWasSetBackMeasuresAnew) {
  usual(10'000, 90);
  EXPECT_EQ(usual(9'000, 50), 50);
}

TEST_F(HostCacheTest, ADamagedEntryIsNoMeasurement) {
  usual(10'000, 90);
  for (const char* damaged : {"\"rule_bytes_per_s\"", "\"at\"", "\"cores\""}) {
    std::ifstream file(path_);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = text.find(damaged);
    ASSERT_NE(at, std::string::npos) << text;
    write_text_file("the file", path_, text.replace(at + 1, 1, "x"));
    EXPECT_EQ(usual(10'001, 50), 50) << damaged;
  }
}

TEST_F(HostCacheTest, WithoutAFileNothingIsKept) {
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return passes_at(50);
  };
  const HostCache none("");
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(none.usual(10'000, 50e-9, measure).host.rule_bytes_per_s, 50);
    EXPECT_EQ(measured, i);
  }
}

}  // namespace
}  // namespace paceline
