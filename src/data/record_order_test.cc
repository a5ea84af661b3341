#include "data/record_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace paceline {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> indices(RecordOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> all;
  order.begin(epoch);
  for (std::int64_t i = 0; i < order.size(); ++i) all.push_back(order.next().index);
  return all;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

std::vector<std::int64_t> counted(std::int64_t size) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(RecordOrder, IsThatOfTheIndexWithoutStages) {
  RecordOrder order({.files = {3, 2}});
  EXPECT_EQ(indices(order, 0), counted(5));
  EXPECT_EQ(indices(order, 7), counted(5));
}

TEST(RecordOrder, TakesRecordsOfSeveralFilesByTurns) {
  RecordOrder order({.files = {2, 2, 2, 2}, .interleave = 2});
  const std::vector<std::int64_t> all = indices(order, 0);
  EXPECT_EQ(sorted(all), counted(8));
  EXPECT_NE(all[0] / 2, all[1] / 2);  // of two files
  EXPECT_EQ(all[0] / 2, all[2] / 2);  // the first one again
  EXPECT_NE(indices(order, 1), all);  // files in another order
  EXPECT_EQ(indices(order, 0), all);
}

TEST(RecordOrder, InterleavesFilesOfUnlikeAndOfNoLength) {
  for (int files = 1; files < 6; ++files) {
    RecordOrder order({.files = {0, 5, 1, 0, 3}, .interleave = files});
    for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
      EXPECT_EQ(sorted(indices(order, epoch)), counted(9));
    }
  }
}

TEST(RecordOrder, SharesAnEpochOutAmongShards) {
  std::vector<std::int64_t> all;
  for (int part = 0; part < 3; ++part) {
    RecordOrder order({.files = {4, 6}, .interleave = 2, .part = part, .parts = 3, .pool = 2});
    EXPECT_EQ(order.size(), part == 0 ? 4 : 3);
    const std::vector<std::int64_t> own = indices(order, 5);
    all.insert(all.end(), own.begin(), own.end());
  }
  EXPECT_EQ(sorted(all), counted(10));
}

TEST(RecordOrder, HasNothingForAShardThatIsOneTooMany) {
  RecordOrder order({.files = {2}, .part = 2, .parts = 3});
  EXPECT_EQ(order.size(), 0);
}

TEST(RecordOrder, DrawsFromAPool) {
  RecordOrder order({.files = {1000}, .pool = 10, .seed = 3});
  const std::vector<std::int64_t> all = indices(order, 0);
  EXPECT_EQ(sorted(all), counted(1000));
  EXPECT_FALSE(std::ranges::is_sorted(all));
  // The record that leaves the pool at place i was in the pool, which then held no record above i +
  // 9.
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_LT(all[std::size_t(i)], i + 10);
  EXPECT_NE(indices(order, 1), all);
  RecordOrder other({.files = {1000}, .pool = 10, .seed = 4});
  EXPECT_NE(indices(other, 0), all);
}

TEST(RecordOrder, IsAUniformShuffleWhenThePoolHoldsAll) {
  RecordOrder order({.files = {8}, .pool = 100});
  std::vector<int> first(8);
  constexpr int kEpochs = 8000;
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    order.begin(epoch);
    ++first[std::size_t(order.next().index)];
  }
  for (const int count : first) EXPECT_NEAR(count, kEpochs / 8, 150);  // five deviations
}

TEST(RecordOrder, TellsThePlaceAmongAllShards) {
  RecordOrder order({.files = {7}, .part = 1, .parts = 3});
  EXPECT_EQ(order.next().place, 1);
  EXPECT_EQ(order.next().place, 4);
}

}  // namespace
}  // namespace paceline
