// The table of all strategies. A new strategy is a line in the table and, if no existing file makes
// the right JoinedStrategy, a new file that does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "params/strategy/strategy_kind.h"

namespace paceline {

/// Returns all strategies. The first one for a kind of cluster is its default.
std::span<const StrategyKind* const> strategies();
/// Returns each name once.
std::vector<std::string> strategy_names();
/// Adds a strategy that Paceline does not have to the table, for as long as this object lives. In
/// that time, no other thread may look at the table.
class AddedStrategy {
 public:
  explicit AddedStrategy(const StrategyKind& kind);
  ~AddedStrategy();
  AddedStrategy(const AddedStrategy&) = delete;
  AddedStrategy& operator=(const AddedStrategy&) = delete;

 private:
  const StrategyKind& kind_;
};

/// Returns the strategy of this name. If several strategies have the name, returns the one for
/// clusters of this kind. Null when no strategy has the name.
const StrategyKind* find_strategy(std::string_view name, ClusterKind cluster);
/// As find_strategy. If no strategy has the name, throws kInvalidArgument with the nearest name and
/// all names.
const StrategyKind& strategy_named(std::string_view name, ClusterKind cluster);
/// True for a name that a strategy had in 0.1.0 but no longer has: "mixed".
bool is_old_strategy_name(std::string_view name);
/// True when strategies of this name are only for clusters without parameter servers.
bool is_without_ps(std::string_view name);
/// The default strategy for a kind of cluster.
const StrategyKind& default_strategy(ClusterKind cluster);

/// The name by which a user lets Paceline choose the strategy.
///
/// If the cluster has several workers, and the addresses of its tasks name several hosts, the
/// choice is local steps, since the links between hosts may not be fast. Otherwise the choice is
/// the default strategy for the kind of cluster. All tasks of a job choose alike, since only the
/// addresses count.
constexpr std::string_view kAutomatic = "auto";
/// Returns the kind of Cluster::strategy. For kAutomatic, this is the chosen one; for a strategy
/// without a name, the default one. Throws as strategy_named does.
const StrategyKind& strategy_kind(const Cluster& cluster);
/// Returns the kind of a strategy for tasks without known addresses. For kAutomatic, this is the
/// default one. Throws as strategy_named does.
const StrategyKind& strategy_kind(const Strategy& strategy, ClusterKind cluster);
std::string strategy_name(const Cluster& cluster);

/// Why TrainOptions::sync_batch_norm does not go with the rest of the cluster: "needs …", "does not
/// go with …"; empty when it does.
std::string why_no_sync_batch_norm(const Cluster& cluster);

/// Joins the job by the cluster's strategy, and puts over it the accumulation that
/// TrainOptions::accumulate asks for. Throws as strategy_named does, and also what the strategy
/// throws. Throws kInvalidArgument when the strategy, or batch norm of the whole batch, does not
/// fit the cluster or the variables.
JoinedStrategy join_strategy(const JoinOptions& options, std::vector<VariableSpec> variables);

}  // namespace paceline
