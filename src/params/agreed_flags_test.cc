#include "params/agreed_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/flag_difference.h"

namespace paceline {
namespace {

constexpr std::uint64_t kSeed = 1;

Cluster worker_of_a_job() {
  Cluster cluster;
  cluster.role = Cluster::Role::kTask;
  cluster.spec = {.ps = {"a:1"}, .workers = {"b:1", "c:1"}};
  return cluster;
}

std::string difference(void (*change)(Cluster&), std::uint64_t seed = kSeed) {
  Cluster other = worker_of_a_job();
  change(other);
  return flag_difference(agreed_flags(worker_of_a_job(), kSeed), "the chief",
                         agreed_flags(other, seed), "worker:1");
}

TEST(AgreedFlags, OfWorkersOfOneJobAgree) {
  const auto change = [](Cluster& c) {
    c.task.index = 1;
    c.towers = c.threads = 4;
    c.strategy = "async";  // the usual one
    c.wire = DType::kBFloat16;
  };
  EXPECT_EQ(difference(change), "");
}

TEST(AgreedFlags, EachThatDiffersIsNamedWithBothValues) {
  EXPECT_EQ(difference([](Cluster& c) { c.strategy = "sync"; }),
            "the chief's --strategy is async, that of worker:1 is sync");
  EXPECT_EQ(difference([](Cluster& c) { c.staleness = 3; }),
            "the chief's --staleness is 0, that of worker:1 is 3");
  EXPECT_EQ(difference([](Cluster& c) { c.replicas_to_aggregate = 1; }),
            "the chief's --replicas-to-aggregate is all, that of worker:1 is 1");
  EXPECT_EQ(difference([](Cluster& c) { c.fold_late = true; }),
            "the chief's --late is drop, that of worker:1 is fold");
  EXPECT_EQ(difference([](Cluster& c) { c.local_steps = 5; }),
            "the chief's --local-steps is 20, that of worker:1 is 5");
  EXPECT_EQ(difference([](Cluster& c) { c.outer_rate = 1; }),
            "the chief's --outer-rate is 0.7, that of worker:1 is 1");
  EXPECT_EQ(difference([](Cluster& c) { c.outer_momentum = 0; }),
            "the chief's --outer-momentum is 0.5, that of worker:1 is 0");
  EXPECT_EQ(difference([](Cluster& c) { c.outer_fragments = 2; }),
            "the chief's --outer-fragments is the usual, that of worker:1 is 2");
  EXPECT_EQ(difference([](Cluster& c) { c.outer_async = true; }),
            "the chief's --outer is sync, that of worker:1 is async");
  EXPECT_EQ(difference([](Cluster& c) { c.outer_delay = 2; }),
            "the chief's --outer-delay is the usual, that of worker:1 is 2");
  EXPECT_EQ(difference([](Cluster& c) { c.accumulate = 4; }),
            "the chief's --accumulate is 1, that of worker:1 is 4");
  EXPECT_EQ(difference([](Cluster& c) { c.sharding = Sharding::kDynamic; }),
            "the chief's --shard is static, that of worker:1 is dynamic");
  EXPECT_EQ(difference([](Cluster& c) { c.sync_batch_norm = true; }),
            "the chief's --sync-batch-norm is not given, that of worker:1 is given");
  EXPECT_EQ(difference([](Cluster& c) { c.on_nan = OnNan::kSkip; }),
            "the chief's --on-nan is stop, that of worker:1 is skip");
  EXPECT_EQ(difference([](Cluster& c) { c.collectives = "mpi"; }),
            "the chief's --collectives is link, that of worker:1 is mpi");
  EXPECT_EQ(difference([](Cluster& c) { c.security.tls = Tls::kAlways; }),
            "the chief's --tls is off-host, that of worker:1 is on");
  EXPECT_EQ(difference([](Cluster& c) { c.security.tls = Tls::kNever; }),
            "the chief's --insecure is not given, that of worker:1 is given");
  EXPECT_EQ(difference([](Cluster&) {}, 7), "the chief's --seed is 1, that of worker:1 is 7");
}

TEST(FlagDifference, IsFitToBePrintedWhateverTheOtherSays) {
  const auto difference_from = [](const std::string& theirs) {
    return flag_difference("--a 1\n--b 2\n", "worker:0", theirs, "worker:1");
  };
  EXPECT_EQ(difference_from("--a 1\n--b 2\n"), "");
  EXPECT_EQ(difference_from(""), "worker:0's --a is 1, that of worker:1 is not said");
  EXPECT_EQ(difference_from("--a 1"), "worker:0's --b is 2, that of worker:1 is not said");
  EXPECT_EQ(difference_from("--a \x1b[31m\n"), "worker:0's --a is 1, that of worker:1 is ?[31m");
  EXPECT_EQ(difference_from("--a 1\n--b 2\n--c 3\n"),
            "worker:0's --c is not said, that of worker:1 is 3");
  EXPECT_LT(difference_from("--a " + std::string(30'000, 'x')).size(), 200);
  EXPECT_LT(difference_from("--a 1\n--b 2\n" + std::string(30'000, 'x')).size(), 200);
}

}  // namespace
}  // namespace paceline
