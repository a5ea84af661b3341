#include "params/protocol/record_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kNoEnd = RecordSet::kNoEnd;

TEST(RecordSet, GivesItsFirstRecordsOnce) {
  RecordSet set;
  EXPECT_EQ(set.take(10, 100), (RecordRange{0, 10}));
  EXPECT_EQ(set.take(10, 100), (RecordRange{10, 20}));
  set.add({3, 5});
  EXPECT_EQ(set.take(10, 100), (RecordRange{3, 5}));
  EXPECT_EQ(set.take(10, 25), (RecordRange{20, 25}));
  EXPECT_EQ(set.take(10, 25).size(), 0);
}

TEST(RecordSet, JoinsWhatTouchesAndCutsWhatIsRemoved) {
  RecordSet set;
  set.remove({10, 20});
  set.remove({30, 40});
  EXPECT_THAT(set.ranges(),
              ElementsAre(RecordRange{0, 10}, RecordRange{20, 30}, RecordRange{40, kNoEnd}));
  set.add({10, 15});
  set.add({35, 40});
  EXPECT_THAT(set.ranges(),
              ElementsAre(RecordRange{0, 15}, RecordRange{20, 30}, RecordRange{35, kNoEnd}));
  set.add({12, 36});
  EXPECT_THAT(set.ranges(), ElementsAre(RecordRange{0, kNoEnd}));
}

TEST(RecordSet, KnowsWhatFollowsItsFirstRecords) {
  RecordSet set;
  set.remove({10, 20});
  EXPECT_EQ(set.at(0, 100), (RecordRange{0, 10}));
  EXPECT_EQ(set.at(8, 100), (RecordRange{8, 10}));
  EXPECT_EQ(set.at(10, 5), (RecordRange{20, 25}));
  EXPECT_EQ(set.at(1000, 5), (RecordRange{1010, 1015}));
}

TEST(RecordSet, IsTheSameAfterItWasSaved) {
  RecordSet set;
  set.remove({0, 7});
  set.remove({9, 50});
  TaskPosition position;
  position.numbers["data.taken"] = 3;
  tell_unused(set, position);
  EXPECT_EQ(unused_of(position), set);
  forget_unused(position);
  EXPECT_EQ(unused_of(position), std::nullopt);
  EXPECT_EQ(position.numbers.size(), 1U);
}

TEST(RecordSet, RefusesRangesThatCannotBe) {
  const auto why = [](std::vector<RecordRange> ranges) {
    return error_of(ErrorCode::kDataLoss, [&] { RecordSet set(std::move(ranges)); });
  };
  EXPECT_THAT(why({}), HasSubstr("they end"));
  EXPECT_THAT(why({{0, 10}}), HasSubstr("they end"));
  EXPECT_THAT(why({{10, 20}, {15, kNoEnd}}), HasSubstr("15 to"));
  EXPECT_THAT(why({{5, 5}, {7, kNoEnd}}), HasSubstr("5 to 5"));
  EXPECT_THAT(why({{-5, kNoEnd}}), HasSubstr("-5 to"));
  TaskPosition position;
  position.numbers = {{"shared.next", 7}, {"shared.left", 1}};
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { unused_of(position); }),
              HasSubstr("shared.left.1.first is missing"));
}

}  // namespace
}  // namespace paceline
