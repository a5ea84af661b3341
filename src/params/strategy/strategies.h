// The table of all strategies. A new one is a line of it, and a file that makes a
// JoinedStrategy where none of those that are there does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "params/strategy/strategy_kind.h"

namespace paceline {

/// Returns all strategies. The first one that is for a kind of cluster is its default.
std::span<const StrategyKind* const> strategies();
/// Each name once.
std::vector<std::string> strategy_names();
/// Adds a line to the table for as long as it lives: a strategy that Paceline does not have. No
/// other thread may look at the table meanwhile.
class AddedStrategy {
 public:
  explicit AddedStrategy(const StrategyKind& kind);
  ~AddedStrategy();
  AddedStrategy(const AddedStrategy&) = delete;
  AddedStrategy& operator=(const AddedStrategy&) = delete;

 private:
  const StrategyKind& kind_;
};

/// The strategy of this name, of several that which is for such clusters; null when there is none.
const StrategyKind* find_strategy(std::string_view name, ClusterKind cluster);
/// The same. Throws kInvalidArgument, with the nearest name and all names.
const StrategyKind& strategy_named(std::string_view name, ClusterKind cluster);
/// True of a name that strategies had in 0.1.0 and have no more: "mixed".
bool is_old_strategy_name(std::string_view name);
/// True when strategies of this name are only for clusters without parameter servers.
bool is_without_ps(std::string_view name);
/// The default of a kind of cluster.
const StrategyKind& default_strategy(ClusterKind cluster);

/// The name that stands for a strategy that is chosen. For a process that starts no tasks: workers
/// on several hosts make local steps, since their links cannot be taken for fast. On one host, and
/// in one process, it is the default. All tasks of a job choose the same: nothing but the addresses
/// counts.
constexpr std::string_view kAutomatic = "auto";
/// The kind of Cluster::strategy, the chosen one where that is kAutomatic, and the default where it
/// has no name. Throws as strategy_named does.
const StrategyKind& strategy_kind(const Cluster& cluster);
/// The same of tasks whose addresses are not known; kAutomatic is the default.
const StrategyKind& strategy_kind(const Strategy& strategy, ClusterKind cluster);
std::string strategy_name(const Cluster& cluster);

/// Why TrainOptions::sync_batch_norm does not go with the rest of the cluster: "needs …", "does not
/// go with …"; empty when it does.
std::string why_no_sync_batch_norm(const Cluster& cluster);

/// Makes the cluster's strategy, and over it what TrainOptions::accumulate asks for. Joins the job.
/// Throws as strategy_named does, kInvalidArgument when the strategy or batch norm of the whole
/// batch does not fit the cluster or the variables, and what the strategy throws.
JoinedStrategy join_strategy(const JoinOptions& options, std::vector<VariableSpec> variables);

}  // namespace paceline
