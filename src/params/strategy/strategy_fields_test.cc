#include "params/strategy/strategy_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/strategy/strategies.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

using Flags = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> flags_for(const char* name, ClusterKind cluster,
                                   const Strategy& options = {}) {
  std::vector<std::string> flags;
  for (const StrategyField& field : strategy_fields()) {
    if (field.is_of(strategy_named(name, cluster), options)) flags.emplace_back(field.flag);
  }
  return flags;
}

TEST(StrategyFields, WhatIsWrittenIsRead) {
  const Strategy all{.name = "local_sgd",
                     .staleness = 3,
                     .replicas = 2,
                     .late = LateContribution::kFold,
                     .local_steps = 7,
                     .outer_rate = 0.25f,
                     .outer_momentum = 0.1f,
                     .outer_fragments = 4,
                     .outer_async = true};
  Flags flags;
  for (const StrategyField& field : strategy_fields()) {
    EXPECT_FALSE(field.is_usual(all)) << field.flag;
    EXPECT_TRUE(field.is_usual(Strategy())) << field.flag;
    flags.emplace_back(field.flag, field.text(all));
  }
  EXPECT_EQ(strategy_of("local_sgd", flags), all);
}

TEST(StrategyFields, OtherFlagsAndWordsAreLeftOut) {
  EXPECT_EQ(
      strategy_of("ssp", Flags{{"--late", "perhaps"}, {"--steps", "3"}, {"--staleness", "x"}}),
      Strategy{.name = "ssp"});
}

TEST(StrategyFields, EachStrategyHasItsOptions) {
  const auto with_ps = ClusterKind::kWithPs, without = ClusterKind::kWorkersOnly;
  EXPECT_THAT(flags_for("alone", ClusterKind::kOneProcess), ElementsAre());
  EXPECT_THAT(flags_for("async", with_ps), ElementsAre());
  EXPECT_THAT(flags_for("allreduce", without), ElementsAre());
  EXPECT_THAT(flags_for("hybrid", with_ps), ElementsAre());
  EXPECT_THAT(flags_for("ssp", with_ps), ElementsAre("--staleness"));
  EXPECT_THAT(flags_for("sync", with_ps), ElementsAre("--replicas-to-aggregate", "--late"));
  EXPECT_THAT(flags_for("local_sgd", without),
              ElementsAre("--local-steps", "--outer-rate", "--outer-momentum", "--outer-fragments",
                          "--outer"));
  EXPECT_THAT(flags_for("local_sgd", with_ps),
              ElementsAre("--replicas-to-aggregate", "--late", "--local-steps", "--outer-rate",
                          "--outer-momentum", "--outer-fragments", "--outer"));
  EXPECT_THAT(flags_for("local_sgd", with_ps, {.outer_async = true}),
              ElementsAre("--local-steps", "--outer-rate", "--outer-momentum", "--outer-fragments",
                          "--outer"));
}

TEST(StrategyFields, TheFlagsOfAWayNameWhatTheStrategyHasAndIsNotAsUsual) {
  const auto flags = [](const Strategy& options) {
    return option_flags(strategy_named(options.name, ClusterKind::kWithPs), options);
  };
  EXPECT_EQ(flags({.name = "ssp", .staleness = 3, .replicas = 2}), " --staleness 3");
  EXPECT_EQ(flags({.name = "sync", .staleness = 3}), "");
  EXPECT_EQ(flags({.name = "local_sgd"}), " --local-steps 20");
  EXPECT_EQ(flags({.name = "local_sgd", .outer_momentum = 0, .outer_async = true}),
            " --local-steps 20 --outer-momentum 0 --outer async");
}

}  // namespace
}  // namespace paceline
