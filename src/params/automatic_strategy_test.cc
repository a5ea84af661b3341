#include "params/automatic_strategy.h"

#include <gtest/gtest.h>

#include "params/strategies.h"

namespace paceline {
namespace {

std::string chosen(const ClusterSpec& spec) {
  Cluster cluster;
  cluster.role = Cluster::Role::kTask;
  cluster.spec = spec;
  cluster.strategy = "auto";
  return strategy_name(cluster);
}

TEST(AutomaticStrategy, WorkersOnSeveralHostsMakeLocalSteps) {
  EXPECT_EQ(chosen({.ps = {"a:1"}, .workers = {"b:1", "c:1"}}), "local");
  EXPECT_EQ(chosen({.ps = {}, .workers = {"b:1", "c:1"}}), "local");
}

TEST(AutomaticStrategy, ElseItIsTheDefault) {
  EXPECT_EQ(chosen({.ps = {"a:1"}, .workers = {"a:2", "a:3"}}), "async");
  EXPECT_EQ(chosen({.ps = {"a:1"}, .workers = {"b:1"}}), "async");  // one worker averages nothing
  EXPECT_EQ(chosen({.ps = {}, .workers = {"a:1", "a:2"}}), "allreduce");
  Cluster alone;
  alone.strategy = "auto";
  EXPECT_EQ(strategy_name(alone), "local");
}

}  // namespace
}  // namespace paceline
