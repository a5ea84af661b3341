#include "params/protocol/cluster_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(ClusterDifference, NamesTheTasksWhoseAddressesDiffer) {
  EXPECT_EQ(cluster_difference("ps=a:1;worker=b:1,b:2", "ps=a:1;worker=b:1,b:3"),
            "worker:1 is b:2 here, b:3 there");
  EXPECT_EQ(cluster_difference("ps=a:1;worker=b:1,b:2", "ps=c:1;worker=b:1"),
            "ps:0 is a:1 here, c:1 there; worker:1 is b:2 here, none there");
}

TEST(ClusterDifference, IsEmptyForEqualSpecsAndForNames) {
  EXPECT_EQ(cluster_difference("ps=a:1;worker=b:1", "ps=a:1;worker=b:1"), "");
  EXPECT_EQ(cluster_difference("mine", "ps=a:1;worker=b:1"), "");
  EXPECT_EQ(cluster_difference("mine", "yours"), "");
}

TEST(ClusterDifference, ShowsAtMostFive) {
  const std::string difference =
      cluster_difference("worker=a:1,a:2,a:3,a:4,a:5,a:6,a:7", "worker=b:1");
  EXPECT_THAT(difference, testing::EndsWith("; 2 more differ"));
  EXPECT_THAT(difference, testing::Not(testing::HasSubstr("worker:5")));
}

}  // namespace
}  // namespace paceline
