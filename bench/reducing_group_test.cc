// Tests that groups of processes can reduce in each way; their times do not matter. Each group
// checks its first sums.
#include "bench/reducing_group.h"

#include <gtest/gtest.h>

namespace paceline::bench {
namespace {

struct Way {
  const char* link;
  int members;
};

class ReducingGroups : public ::testing::TestWithParam<Way> {};

TEST_P(ReducingGroups, ReduceAgainAndAgain) {
  const auto [link, members] = GetParam();
  const auto group = make_reducing_group({.link = link, .members = members, .bytes = 40'000});
  for (int i = 0; i < 20; ++i) EXPECT_GT(group->reduce(), 0);
  group->pause();
  group->resume();
  EXPECT_GT(group->reduce(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, ReducingGroups,
                         ::testing::Values(Way{"shm", 2}, Way{"shm", 4}, Way{"tcp", 2},
                                           Way{"tcp", 3}),
                         [](const auto& one) {
                           return one.param.link + std::to_string(one.param.members);
                         });

}  // namespace
}  // namespace paceline::bench
