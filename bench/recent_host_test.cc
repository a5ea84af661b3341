#include "bench/recent_host.h"

#include <gtest/gtest.h>

namespace paceline::bench {
namespace {

TEST(RecentHostTest, GivesTheMedianOfEachRate) {
  RecentHost recent;
  for (const double rate : {70, 140, 72}) {
    recent.add({.name = "", .flops_per_s = 1000 - rate, .rule_bytes_per_s = rate});
  }
  EXPECT_EQ(recent.usual().rule_bytes_per_s, 72);
  EXPECT_EQ(recent.usual().flops_per_s, 928);
}

TEST(RecentHostTest, ForgetsWhatWasLongAgo) {
  RecentHost recent;
  for (int i = 0; i < 20; ++i) recent.add({.name = "", .rule_bytes_per_s = double(i)});
  EXPECT_EQ(recent.size(), RecentHost::kMost);
  EXPECT_EQ(recent.usual().rule_bytes_per_s, 15);
}

}  // namespace
}  // namespace paceline::bench
