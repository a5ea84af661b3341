// The strategies by which workers share what they learn, by name. A new one is its own files and a
// line in strategies.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "params/distribution.h"

namespace paceline {

/// The tasks that a cluster is made of.
enum class ClusterKind : std::uint8_t { kOneProcess, kWithPs, kWorkersOnly };
/// Also of a cluster that the launcher is to start.
ClusterKind kind_of(const Cluster& cluster);

struct Strategy {
  std::string_view name;     // as --strategy takes it
  std::string_view meaning;  // for --help: "each contribution is applied as it arrives"
  ClusterKind kind;          // of the clusters that it is for
  Distribution (*make)(const DistributionOptions& options, std::vector<VariableSpec> variables);
};

/// Returns all strategies. The first one that fits a cluster is its default.
std::span<const Strategy> strategies();
std::vector<std::string> strategy_names();
/// Returns the strategy of this name, of several that which is for such clusters. Throws
/// kInvalidArgument, with the nearest name and all names.
const Strategy& strategy_named(std::string_view name, ClusterKind kind = ClusterKind::kOneProcess);
/// The default of a kind of cluster.
const Strategy& default_strategy(ClusterKind kind);

/// The name that stands for the strategy that automatic_strategy() chooses.
constexpr std::string_view kAutomatic = "auto";
/// Cluster::strategy, the chosen one where it is kAutomatic, the default's name where it is empty.
std::string strategy_name(const Cluster& cluster);

/// Why Cluster::sync_batch_norm does not go with the rest of the cluster: "needs …", "does not go
/// with …"; empty when it does.
std::string why_no_sync_batch_norm(const Cluster& cluster);

/// Makes strategy_name(), and over it what Cluster::accumulate asks for. Joins the job. Throws as
/// strategy_named does, kInvalidArgument when the strategy or batch norm of the whole batch does
/// not fit the cluster, and what the strategy throws.
Distribution make_distribution(const DistributionOptions& options,
                               std::vector<VariableSpec> variables);

}  // namespace paceline
