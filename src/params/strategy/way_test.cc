#include "params/strategy/way.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Way, IsReadFromItsFlags) {
  EXPECT_TRUE(way_of("")->is_one_process());
  EXPECT_EQ(way_of("--ps 2 --workers 4 --wire int8")->kind().name, "async");
  EXPECT_EQ(way_of("--ps 0 --workers 2")->kind().name, "allreduce");
  EXPECT_FALSE(way_of("--ps 1 --workers 2 --strategy sync")->makes_local_steps());
  EXPECT_EQ(way_of("--ps 1 --workers 2 --strategy gossip"), std::nullopt);
  const Way way = *way_of(
      "--ps 1 --workers 3 --strategy sync --replicas-to-aggregate 2 --late fold --accumulate 4 "
      "--towers 2 --wire bfloat16 --top-k 8");
  EXPECT_EQ(way.ps, 1);
  EXPECT_EQ(way.workers, 3);
  EXPECT_EQ(way.strategy.replicas, 2);
  EXPECT_EQ(way.strategy.late, LateContribution::kFold);
  EXPECT_EQ(way.accumulate, 4);
  EXPECT_EQ(way.towers, 2);
  EXPECT_EQ(way.wire, (WireForm{{DType::kBFloat16, 8}}));
}

// Whatever a way is asked for with, its flags say it whole.
TEST(Way, OfItsFlagsIsTheSameWay) {
  for (const StrategyKind* const kind : strategies()) {
    for (const WireForm& wire :
         {WireForm{}, WireForm{DType::kUInt8}, WireForm{{DType::kFloat32, 8}}}) {
      Way way{
          .ps = kind->has_ps() ? 2 : 0, .workers = 4, .wire = wire, .accumulate = 3, .towers = 2};
      if (kind->cluster == ClusterKind::kOneProcess) way = {.towers = 4};
      way.strategy = settled(*kind, {.staleness = 3,
                                     .replicas = 2,
                                     .late = LateContribution::kFold,
                                     .local_steps = 7,
                                     .outer_rate = 0.25f,
                                     .outer_fragments = 2});
      const std::string flags = flags_of(way);
      const std::optional<Way> read = way_of(flags);
      ASSERT_TRUE(read) << flags;
      EXPECT_EQ(flags_of(*read), flags);
      EXPECT_EQ(&read->kind(), kind) << flags;
      EXPECT_EQ(read->text(), way.text());
      EXPECT_EQ(read->wire, way.wire) << flags;
    }
  }
}

}  // namespace
}  // namespace paceline
