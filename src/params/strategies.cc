#include "params/strategies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "paceline/error.h"
#include "params/accumulate/accumulate_store.h"
#include "params/automatic_strategy.h"
#include "params/collective/allreduce_strategy.h"
#include "params/local/local_strategy.h"
#include "params/mixed/mixed_strategy.h"
#include "params/outer/local_steps_strategy.h"
#include "params/worker/async_strategy.h"
#include "params/worker/ssp_strategy.h"
#include "params/worker/sync_strategy.h"

namespace paceline {
namespace {

constexpr Strategy kStrategies[] = {
    {"local", "one process, which applies its own contributions", ClusterKind::kOneProcess,
     make_local_strategy},
    {"async", "a parameter server applies each contribution as it arrives", ClusterKind::kWithPs,
     make_async_strategy},
    {"ssp", "as async, but fast workers wait for slow ones (--staleness)", ClusterKind::kWithPs,
     make_ssp_strategy},
    {"sync", "rounds: the mean of all workers' contributions is applied once", ClusterKind::kWithPs,
     make_sync_strategy},
    {"allreduce", "the workers average their contributions, without parameter servers",
     ClusterKind::kWorkersOnly, make_allreduce_strategy},
    {"mixed", "sparse variables as sync on parameter servers, dense ones by all-reduce",
     ClusterKind::kWithPs, make_mixed_strategy},
    {"local", "local steps, whose sum is a contribution to an outer rule (--local-steps, --outer)",
     ClusterKind::kWithPs, make_local_steps_strategy},
    {"local", "the same over an all-reduce", ClusterKind::kWorkersOnly, make_local_steps_strategy},
};

// The strategy of one process fits every cluster.
const char* needs_of(ClusterKind kind) {
  return kind == ClusterKind::kWithPs ? "needs a cluster with parameter servers"
                                      : "needs a cluster of workers without parameter servers";
}

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : kStrategies) {
    if (std::ranges::find(names, strategy.name) == names.end()) names.emplace_back(strategy.name);
  }
  return names;
}

const Strategy& strategy_named(std::string_view name, ClusterKind kind) {
  const Strategy* named = nullptr;
  for (const Strategy& strategy : kStrategies) {
    if (strategy.name != name) continue;
    if (named == nullptr || strategy.kind == kind) named = &strategy;
  }
  if (named != nullptr) return *named;
  const std::vector<std::string> names = strategy_names();
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[strategy] '{}' is none of {}{}", name, fmt::join(names, ", "),
                          did_you_mean(name, names)));
}

ClusterKind kind_of(const Cluster& cluster) {
  if (!cluster.distributed()) return ClusterKind::kOneProcess;
  const bool ps = !cluster.spec.ps.empty() || cluster.local_ps > 0;
  return ps ? ClusterKind::kWithPs : ClusterKind::kWorkersOnly;
}

const Strategy& default_strategy(ClusterKind kind) {
  return *std::ranges::find(kStrategies, kind, &Strategy::kind);
}

std::string strategy_name(const Cluster& cluster) {
  if (cluster.strategy == kAutomatic) return std::string(automatic_strategy(cluster));
  if (!cluster.strategy.empty()) return cluster.strategy;
  return std::string(default_strategy(kind_of(cluster)).name);
}

std::string why_no_sync_batch_norm(const Cluster& cluster) {
  const bool workers = cluster.distributed() && strategy_name(cluster) == "allreduce";
  if (!workers && cluster.towers == 1) {
    return "needs an all-reduce (--ps 0 --workers N) or --towers, whose parts of a batch are "
           "computed at once";
  }
  if (workers && cluster.towers > 1) return "does not go with --towers under an all-reduce";
  if (workers && cluster.accumulate > 1) return "does not go with --accumulate under an all-reduce";
  if (cluster.device.kind == "sim") {
    return "needs a device that computes on the host: --device cpu";
  }
  return "";
}

Distribution make_distribution(const DistributionOptions& options,
                               std::vector<VariableSpec> variables) {
  const Cluster& cluster = options.cluster;
  const Strategy& strategy = strategy_named(strategy_name(cluster), kind_of(cluster));
  if (strategy.kind != kind_of(cluster)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[strategy] '{}' {}", strategy.name, needs_of(strategy.kind)));
  }
  const std::string why_not = cluster.sync_batch_norm ? why_no_sync_batch_norm(cluster) : "";
  if (!why_not.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "[strategy] batch norm of the whole batch (--sync-batch-norm) " + why_not);
  }
  Distribution made = strategy.make(options, std::move(variables));
  if (cluster.accumulate <= 1) return made;
  return accumulate(std::move(made), cluster.accumulate, options.pool);
}

}  // namespace paceline
