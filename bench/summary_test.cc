#include "bench/summary.h"

#include <gmock/gmock.h>

#include "paceline/error.h"

namespace paceline::bench {
namespace {

using ::testing::ElementsAre;

TEST(Summary, OfAnOddCountIsTheMiddleOne) {
  const Summary summary = summarize(std::vector<double>{9, 1, 5, 3, 7});
  EXPECT_EQ(summary.median, 5);
  EXPECT_EQ(summary.low, 3);
  EXPECT_EQ(summary.high, 7);
  EXPECT_EQ(summary.count, 5u);
}

TEST(Summary, OfAnEvenCountLiesBetweenTheTwoInTheMiddle) {
  const Summary summary = summarize(std::vector<double>{4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(summary.median, 2.5);
  EXPECT_DOUBLE_EQ(summary.low, 1.75);
  EXPECT_DOUBLE_EQ(summary.high, 3.25);
}

TEST(Summary, OfOneValueIsThatValue) {
  const Summary summary = summarize(std::vector<double>{3});
  EXPECT_EQ(summary.median, 3);
  EXPECT_EQ(summary.low, 3);
  EXPECT_EQ(summary.high, 3);
}

TEST(Summary, OneOutlierMovesNoMedian) {
  EXPECT_EQ(summarize(std::vector<double>{1, 1, 1, 1, 1000}).median, 1);
}

TEST(Summary, RefusesNothing) { EXPECT_THROW(summarize(std::vector<double>{}), Error); }

TEST(PairedRatios, DivideEachByItsPartner) {
  EXPECT_THAT(paired_ratios(std::vector<double>{4, 9}, std::vector<double>{2, 3}),
              ElementsAre(2, 3));
  EXPECT_THROW(paired_ratios(std::vector<double>{4}, std::vector<double>{}), Error);
}

}  // namespace
}  // namespace paceline::bench
