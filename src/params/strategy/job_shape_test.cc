#include "params/strategy/job_shape.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(JobShape, IsReadFromItsFlags) {
  EXPECT_TRUE(shape_of("")->is_one_process());
  EXPECT_EQ(shape_of("--ps 2 --workers 4 --wire int8")->kind().name, "async");
  EXPECT_EQ(shape_of("--ps 0 --workers 2")->kind().name, "allreduce");
  EXPECT_FALSE(shape_of("--ps 1 --workers 2 --strategy sync")->makes_local_steps());
  EXPECT_EQ(shape_of("--ps 1 --workers 2 --strategy gossip"), std::nullopt);
  const JobShape shape = *shape_of(
      "--ps 1 --workers 3 --strategy sync --replicas-to-aggregate 2 --late fold --accumulate 4 "
      "--towers 2 --wire bfloat16 --top-k 8");
  EXPECT_EQ(shape.ps, 1);
  EXPECT_EQ(shape.workers, 3);
  EXPECT_EQ(shape.strategy.replicas, 2);
  EXPECT_EQ(shape.strategy.late, LateContribution::kFold);
  EXPECT_EQ(shape.accumulate, 4);
  EXPECT_EQ(shape.towers, 2);
  EXPECT_EQ(shape.wire, (WireForm{{DType::kBFloat16, 8}}));
}

// Whatever the shape of a job, its flags describe it completely.
TEST(JobShape, OfItsFlagsIsTheSame) {
  for (const StrategyKind* const kind : strategies()) {
    for (const WireForm& wire :
         {WireForm{}, WireForm{DType::kUInt8}, WireForm{{DType::kFloat32, 8}}}) {
      JobShape shape{
          .ps = kind->has_ps() ? 2 : 0, .workers = 4, .wire = wire, .accumulate = 3, .towers = 2};
      if (kind->cluster == ClusterKind::kOneProcess) shape = {.towers = 4};
      shape.strategy = settled(*kind, {.staleness = 3,
                                       .replicas = 2,
                                       .late = LateContribution::kFold,
                                       .local_steps = 7,
                                       .outer_rate = 0.25f,
                                       .outer_fragments = 2});
      const std::string flags = flags_of(shape);
      const std::optional<JobShape> read = shape_of(flags);
      ASSERT_TRUE(read) << flags;
      EXPECT_EQ(flags_of(*read), flags);
      EXPECT_EQ(&read->kind(), kind) << flags;
      EXPECT_EQ(read->text(), shape.text());
      EXPECT_EQ(read->wire, shape.wire) << flags;
    }
  }
}

}  // namespace
}  // namespace paceline
