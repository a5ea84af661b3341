#include "base/open_dimension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/tensor.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OpenDimension, StandsForItsNameInShapes) {
  const std::int64_t batch = open_dimension("batch"), time = open_dimension("time");
  EXPECT_EQ(open_dimension("batch"), batch) << "in all graphs";
  EXPECT_NE(batch, time);
  EXPECT_EQ(Shape({batch, time, 64}).str(), "(batch,time,64)");
  EXPECT_EQ(Shape({batch * time, 8 * batch}).str(), "(batch·time,8·batch)");
  EXPECT_EQ(Shape({time + 1, time - 2}).str(), "(time+1,time-2)");
  EXPECT_EQ(Shape({batch * batch}).str(), "(batch·batch)");
  EXPECT_EQ(Shape({50'257, 65'536, 1}).str(), "(50257,65536,1)");
  EXPECT_EQ(Shape({100'000, 131'072, 0}).str(), "(100000,131072,0)");
}

TEST(OpenDimension, TakesItsSizeInProductsAndSums) {
  const std::int64_t batch = open_dimension("batch"), time = open_dimension("time");
  const OpenSizes sizes = {{"batch", 5}, {"time", 7}};
  EXPECT_EQ(sized(batch, sizes), 5);
  EXPECT_EQ(sized(batch * time * 64, sizes), 5 * 7 * 64);
  EXPECT_EQ(sized(time + 2, sizes), 9);
  EXPECT_EQ(sized(batch * time, {{"batch", 5}}), 5 * time) << "one stays open";
  EXPECT_EQ(sized(64, sizes), 64);
  EXPECT_EQ(sized(batch, {{"batch", 0}}), 0);
}

TEST(OpenDimension, KnowsWhatItDependsOn) {
  const std::int64_t batch = open_dimension("batch"), time = open_dimension("time");
  EXPECT_EQ(open_name(batch), "batch");
  EXPECT_EQ(open_name(2 * batch), "");
  EXPECT_EQ(open_name(64), "");
  EXPECT_TRUE(is_open(time + 1));
  EXPECT_FALSE(is_open(64));
  EXPECT_THAT(open_names(3 * batch * time), ElementsAre("batch", "time"));
  EXPECT_THAT(open_names(7), ElementsAre());
}

TEST(OpenDimension, NeedsANameAndANumber) {
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [] { open_dimension(""); }),
              HasSubstr("needs a name"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [] {
                         for (int i = 0; i < 17; ++i) open_dimension("n" + std::to_string(i));
                       }),
              HasSubstr("one open dimension too many"));
}

}  // namespace
}  // namespace paceline
