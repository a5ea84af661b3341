#include "predict/pace_cache.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_folder.h"
#include "base/text_file.h"

namespace paceline {
namespace {

TEST(PaceCacheTest, KeepsPacesByTheirKey) {
  const TemporaryFolder folder;
  const PaceCache cache(folder.path() + "/below/pace.json");
  EXPECT_EQ(cache.find("a").size(), 0u);
  cache.keep("a", {2, 0.5});
  cache.keep("b", {2, 0.25});
  EXPECT_EQ(nearest_pace(cache.find("a"), 2), (Pace{2, 0.5}));
  EXPECT_EQ(nearest_pace(cache.find("b"), 2), (Pace{2, 0.25}));
  cache.keep("a", {2, 0.75});
  EXPECT_EQ(nearest_pace(cache.find("a"), 2), (Pace{2, 0.75}));
}

TEST(PaceCacheTest, RunsThatEndTogetherLoseNothing) {
  constexpr int kRuns = 8, kOfEach = 20;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/pace.json";
  std::vector<std::thread> runs;
  runs.reserve(kRuns);
  for (int run = 0; run < kRuns; ++run) {
    runs.emplace_back([&, run] {
      const PaceCache cache(path);
      for (int i = 0; i < kOfEach; ++i) cache.keep(std::to_string(kOfEach * run + i), {1, 0.5});
    });
  }
  for (std::thread& run : runs) run.join();
  for (int i = 0; i < kRuns * kOfEach; ++i) {
    EXPECT_EQ(nearest_pace(PaceCache(path).find(std::to_string(i)), 1), (Pace{1, 0.5})) << i;
  }
}

TEST(PaceCacheTest, PrefersAsManyThreadsThenTheNextInProportion) {
  const TemporaryFolder folder;
  const PaceCache cache(folder.path() + "/pace.json");
  for (const int threads : {10, 4, 16}) cache.keep("a", {threads, 1.0 / threads});
  EXPECT_EQ(nearest_pace(cache.find("a"), 16), (Pace{16, 1.0 / 16}));
  EXPECT_EQ(nearest_pace(cache.find("a"), 2), (Pace{4, 0.25}));
  EXPECT_EQ(nearest_pace(cache.find("a"), 64), (Pace{16, 1.0 / 16}));
  EXPECT_EQ(nearest_pace(cache.find("b"), 64), std::nullopt);
}

TEST(PaceCacheTest, WhatOthersDisturbedIsMarkedAndReplacesNothingElse) {
  const TemporaryFolder folder;
  const PaceCache cache(folder.path() + "/pace.json");
  const Pace beside{.threads = 2, .seconds = 0.9, .others_share = 0.4};
  cache.keep("a", beside);
  EXPECT_EQ(nearest_pace(cache.find("a"), 2), beside);
  cache.keep("a", {2, 0.5});
  cache.keep("a", beside);
  EXPECT_EQ(nearest_pace(cache.find("a"), 2), (Pace{2, 0.5}));
}

TEST(PaceCacheTest, KeepsTheCoresThatOtherCodeKeptBusy) {
  const TemporaryFolder folder;
  const PaceCache cache(folder.path() + "/pace.json");
  const Pace waiting{.threads = 2, .seconds = 0.5, .busy_cores = 0.125};
  cache.keep("a", waiting);
  EXPECT_EQ(nearest_pace(cache.find("a"), 2), waiting);
}

TEST(PaceCacheTest, StepsThatRanAtOnceAreOtherPaces) {
  const TemporaryFolder folder;
  const PaceCache cache(folder.path() + "/pace.json");
  const Pace alone{.threads = 1, .seconds = 0.5},
      of_four{.threads = 1, .seconds = 0.75, .copies = 4};
  cache.keep("a", alone);
  cache.keep("a", of_four);
  cache.keep("a", {.threads = 4, .seconds = 0.2});
  EXPECT_EQ(cache.find("a").size(), 3u);
  EXPECT_EQ(nearest_pace(cache.find("a"), 1), alone);
  EXPECT_EQ(nearest_pace(cache.find("a"), 1, 4), of_four);
  EXPECT_EQ(nearest_pace(cache.find("a"), 1, 3), of_four);
}

TEST(PaceCacheTest, OfAVersionThatDidNotNoteWhatRanBesideItIsNone) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/pace.json";
  const PaceCache cache(path);
  cache.keep("b", {1, 1});
  nlohmann::json all = nlohmann::json::parse(std::ifstream(path));
  all["paces"]["a 1"] = 0.25;
  write_text_file("the pace", path, all.dump());
  EXPECT_EQ(cache.find("a").size(), 0u);
}

TEST(PaceCacheTest, ADamagedFileCountsAsEmpty) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/pace.json";
  for (const char* text : {"{", "[]", R"({"processor": "another", "paces": {"a 1": 1}})"}) {
    write_text_file("the pace", path, text);
    EXPECT_EQ(PaceCache(path).find("a").size(), 0u);
  }
  PaceCache("").keep("a", {1, 1});
  EXPECT_EQ(PaceCache("").find("a").size(), 0u);
}

}  // namespace
}  // namespace paceline
