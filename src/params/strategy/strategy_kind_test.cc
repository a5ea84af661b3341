#include "params/strategy/strategy_kind.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "params/strategy/strategies.h"

namespace paceline {
namespace {

// Returns the kind's name, followed by the traits that hold for it: "hybrid ps reduces …".
std::string traits_of(const StrategyKind& kind, const Strategy& options = {}) {
  std::string text(kind.name);
  if (kind.has_ps()) text += " ps";
  if (kind.reduces) text += " reduces";
  if (kind.splits_variables()) text += " splits";
  if (kind.in_rounds(options)) text += " in_rounds";
  if (kind.ps_closes_rounds(options)) text += " ps_closes";
  if (kind.waits_for_others(options)) text += " waits";
  if (kind.shares_each_step()) text += " shares_step";
  if (!kind.exact()) text += " inexact";
  return text;
}

TEST(StrategyKind, TheTableSaysWhatIsTrueOfEach) {
  std::vector<std::string> all;
  for (const StrategyKind* const kind : strategies()) all.push_back(traits_of(*kind));
  EXPECT_EQ(all, (std::vector<std::string>{"alone", "async ps", "ssp ps waits",
                                           "sync ps in_rounds ps_closes waits",
                                           "allreduce reduces in_rounds waits shares_step",
                                           "hybrid ps reduces splits in_rounds waits",
                                           "local_sgd ps in_rounds ps_closes waits inexact",
                                           "local_sgd reduces in_rounds waits inexact"}));
}

TEST(StrategyKind, LocalStepsWithoutRoundsWaitForNobody) {
  const StrategyKind& local = strategy_named("local_sgd", ClusterKind::kWithPs);
  EXPECT_EQ(traits_of(local, {.outer_async = true}), "local_sgd ps inexact");
}

TEST(StrategyKind, TheChiefDeclaresWhatFollowsFromTheTraits) {
  const ClusterSpec spec{.ps = {"a:1", "b:1"}, .workers = {"c:1", "d:1"}};
  const auto declared = [&](const Strategy& options) {
    return aggregation_of(strategy_named(options.name, ClusterKind::kWithPs), options, spec);
  };
  EXPECT_EQ(declared({.name = "async"}), AggregationSpec());
  EXPECT_EQ(declared({.name = "ssp", .staleness = 3}),
            (AggregationSpec{.kind = AggregationKind::kBounded, .staleness = 3}));
  const AggregationSpec rounds{.kind = AggregationKind::kRounds,
                               .replicas = 1,
                               .late = LateContribution::kFold,
                               .num_ps = 2,
                               .coordinator = "a:1"};
  for (const char* const name : {"sync", "local_sgd"}) {
    EXPECT_EQ(declared({.name = name, .replicas = 1, .late = LateContribution::kFold}), rounds);
  }
  EXPECT_EQ(declared({.name = "local_sgd", .replicas = 1, .outer_async = true}), AggregationSpec());
  EXPECT_EQ(declared({.name = "hybrid", .replicas = 1}),
            (AggregationSpec{.kind = AggregationKind::kRounds,
                             .num_ps = 2,
                             .coordinator = "a:1",
                             .workers_commit = true}));
}

TEST(StrategyKind, AKindMayFixOptions) {
  const StrategyKind averaging{.name = "averaging",
                               .meaning = "",
                               .cluster = ClusterKind::kWithPs,
                               .fix = [](Strategy& options) { options.outer_rate = 1; }};
  EXPECT_EQ(settled(averaging, {.local_steps = 5}),
            (Strategy{.name = "averaging", .local_steps = 5, .outer_rate = 1}));
}

}  // namespace
}  // namespace paceline
