#include "params/strategy/strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using testing::HasSubstr;

const std::vector<VariableSpec> kOneVariable = {{.name = "w", .shape = {2}, .rule = Sgd{}}};

JoinOptions options_of(const std::string& strategy, Cluster::Process process) {
  JoinOptions made;
  made.cluster.strategy.name = strategy;
  made.cluster.process = process;
  return made;
}

TEST(Strategies, EachKindOfClusterHasADefault) {
  EXPECT_EQ(default_strategy(ClusterKind::kOneProcess).name, "alone");
  EXPECT_EQ(default_strategy(ClusterKind::kWithPs).name, "async");
  EXPECT_EQ(default_strategy(ClusterKind::kWorkersOnly).name, "allreduce");
}

TEST(Strategies, AnUnknownOneIsNamedWithTheNearestAndAll) {
  const std::string message = error_of(ErrorCode::kInvalidArgument, [] {
    join_strategy(options_of("asinc", Cluster::Process::kAlone), kOneVariable);
  });
  EXPECT_NE(message.find("'asinc' is none of alone, async, ssp, sync"), std::string::npos)
      << message;
  EXPECT_NE(message.find("did you mean 'async'?"), std::string::npos) << message;
}

TEST(Strategies, OneThatDoesNotFitTheClusterIsRefused) {
  const auto refusal = [](const std::string& strategy, Cluster::Process process) {
    JoinOptions options = options_of(strategy, process);
    const bool cluster = process == Cluster::Process::kTask;
    if (cluster) options.cluster.spec = {.ps = {"a:1"}, .workers = {"b:1"}};
    return error_of(ErrorCode::kInvalidArgument, [&] { join_strategy(options, kOneVariable); });
  };
  EXPECT_THAT(refusal("async", Cluster::Process::kAlone),
              HasSubstr("'async' needs a cluster with parameter servers"));
  for (const auto process : {Cluster::Process::kAlone, Cluster::Process::kTask}) {
    EXPECT_THAT(refusal("allreduce", process),
                HasSubstr("'allreduce' needs a cluster of workers without parameter servers"));
  }
  EXPECT_THAT(refusal("alone", Cluster::Process::kTask), HasSubstr("'alone' is for one process"));
}

TEST(Strategies, OneIsInTheTableForAsLongAsItIsAdded) {
  const StrategyKind mine{.name = "mine",
                          .meaning = "",
                          .cluster = ClusterKind::kOneProcess,
                          .make = default_strategy(ClusterKind::kOneProcess).make};
  const JoinOptions options = options_of("mine", Cluster::Process::kAlone);
  {
    const AddedStrategy added(mine);
    EXPECT_EQ(join_strategy(options, kOneVariable).store->variables()[0].name, "w");
  }
  EXPECT_THROW(join_strategy(options, kOneVariable), Error);
}

TEST(Strategies, OneProcessHasItsOwnStoreAndControl) {
  const JoinedStrategy made =
      join_strategy(options_of("alone", Cluster::Process::kAlone), kOneVariable);
  EXPECT_EQ(made.store->variables()[0].name, "w");
  EXPECT_FALSE(made.control->others_save());
}

TEST(Strategies, AccumulateIsAStoreOverTheStrategys) {
  JoinOptions with = options_of("alone", Cluster::Process::kAlone);
  const PlanBinding plan{.uses = {{.variable = 0, .updated = true}}};
  EXPECT_EQ(join_strategy(with, kOneVariable).store->bind(plan, 0)->norm_by(), NormBy::kPlan);
  with.cluster.train.accumulate = 4;
  EXPECT_EQ(join_strategy(with, kOneVariable).store->bind(plan, 0)->norm_by(), NormBy::kStore);
}

std::string chosen(const ClusterSpec& spec) {
  Cluster cluster;
  cluster.process = Cluster::Process::kTask;
  cluster.spec = spec;
  cluster.strategy.name = "auto";
  return strategy_name(cluster);
}

TEST(AutomaticStrategy, WorkersOnSeveralHostsMakeLocalSteps) {
  EXPECT_EQ(chosen({.ps = {"a:1"}, .workers = {"b:1", "c:1"}}), "local_sgd");
  EXPECT_EQ(chosen({.ps = {}, .workers = {"b:1", "c:1"}}), "local_sgd");
}

TEST(AutomaticStrategy, ElseItIsTheDefault) {
  EXPECT_EQ(chosen({.ps = {"a:1"}, .workers = {"a:2", "a:3"}}), "async");
  EXPECT_EQ(chosen({.ps = {"a:1"}, .workers = {"b:1"}}), "async");  // one worker averages nothing
  EXPECT_EQ(chosen({.ps = {}, .workers = {"a:1", "a:2"}}), "allreduce");
  Cluster alone;
  alone.strategy.name = "auto";
  EXPECT_EQ(strategy_name(alone), "alone");
}

}  // namespace
}  // namespace paceline
