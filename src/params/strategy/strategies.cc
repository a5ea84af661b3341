#include "params/strategy/strategies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/nearest.h"
#include "kernels/device_kind.h"
#include "paceline/error.h"
#include "params/accumulate/accumulate_store.h"
#include "params/collective/allreduce_strategy.h"
#include "params/hybrid/hybrid_strategy.h"
#include "params/local/local_strategy.h"
#include "params/outer/local_steps_strategy.h"
#include "params/worker/ps_strategy.h"

namespace paceline {
namespace {

constexpr StrategyKind kStrategies[] = {
    {.name = "alone",
     .old_name = "local",
     .meaning = "one process, which applies its own contributions",
     .cluster = ClusterKind::kOneProcess,
     .make = make_local_strategy},
    {.name = "async",
     .meaning = "a parameter server applies each contribution as it arrives",
     .cluster = ClusterKind::kWithPs,
     .make = make_ps_strategy},
    {.name = "ssp",
     .meaning = "as async, but fast workers wait for slow ones (--staleness)",
     .cluster = ClusterKind::kWithPs,
     .limits_lead = true,
     .make = make_ps_strategy},
    {.name = "sync",
     .meaning = "rounds: the mean of all workers' contributions is applied once",
     .cluster = ClusterKind::kWithPs,
     .rounds = true,
     .make = make_ps_strategy},
    {.name = "allreduce",
     .meaning = "the workers average their contributions, without parameter servers",
     .cluster = ClusterKind::kWorkersOnly,
     .rounds = true,
     .reduces = true,
     .make = make_allreduce_strategy},
    {.name = "hybrid",
     .old_name = "mixed",
     .meaning = "sparse variables as sync on parameter servers, dense ones by all-reduce",
     .cluster = ClusterKind::kWithPs,
     .rounds = true,
     .reduces = true,
     .make = make_hybrid_strategy,
     .why_not_cluster = why_not_hybrid,
     .why_not_variables = why_not_hybrid},
    {.name = "local_sgd",
     .old_name = "local",
     .meaning =
         "local steps, whose sum is a contribution to an outer rule (--local-steps, --outer)",
     .cluster = ClusterKind::kWithPs,
     .rounds = true,
     .makes_local_steps = true,
     .make = make_local_steps_strategy},
    {.name = "local_sgd",
     .old_name = "local",
     .meaning = "the same over an all-reduce",
     .cluster = ClusterKind::kWorkersOnly,
     .rounds = true,
     .reduces = true,
     .makes_local_steps = true,
     .make = make_local_steps_strategy},
};

std::vector<const StrategyKind*>& table() {
  static std::vector<const StrategyKind*> all = [] {
    std::vector<const StrategyKind*> built_in;
    for (const StrategyKind& kind : kStrategies) built_in.push_back(&kind);
    return built_in;
  }();
  return all;
}

// Says in which cluster a strategy trains.
const char* needs_of(ClusterKind cluster) {
  switch (cluster) {
    case ClusterKind::kOneProcess:
      return "is for one process, and not for a cluster";
    case ClusterKind::kWithPs:
      return "needs a cluster with parameter servers";
    case ClusterKind::kWorkersOnly:
      break;
  }
  return "needs a cluster of workers without parameter servers";
}

const StrategyKind& automatic_strategy(const Cluster& cluster) {
  std::set<std::string> hosts;
  for (const auto* tasks : {&cluster.spec.ps, &cluster.spec.workers}) {
    for (const std::string& address : *tasks) hosts.insert(address.substr(0, address.rfind(':')));
  }
  const ClusterKind kind = kind_of(cluster);
  const auto local = std::ranges::find_if(table(), [&](const StrategyKind* each) {
    return each->cluster == kind && each->makes_local_steps;
  });
  const bool far = cluster.workers() > 1 && hosts.size() > 1;
  return far && local != table().end() ? **local : default_strategy(kind);
}

}  // namespace

std::span<const StrategyKind* const> strategies() { return table(); }

AddedStrategy::AddedStrategy(const StrategyKind& kind) : kind_(kind) { table().push_back(&kind_); }
AddedStrategy::~AddedStrategy() { std::erase(table(), &kind_); }

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const StrategyKind* const kind : strategies()) {
    if (std::ranges::find(names, kind->name) == names.end()) names.emplace_back(kind->name);
  }
  return names;
}

const StrategyKind* find_strategy(std::string_view name, ClusterKind cluster) {
  const StrategyKind* named = nullptr;
  for (const StrategyKind* const kind : strategies()) {
    if (!kind->is_called(name)) continue;
    if (named == nullptr || kind->cluster == cluster) named = kind;
  }
  return named;
}

const StrategyKind& strategy_named(std::string_view name, ClusterKind cluster) {
  if (const StrategyKind* const named = find_strategy(name, cluster)) return *named;
  const std::vector<std::string> names = strategy_names();
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[strategy] '{}' is none of {}{}", name, fmt::join(names, ", "),
                          did_you_mean(name, names)));
}

bool is_old_strategy_name(std::string_view name) {
  return !name.empty() && std::ranges::any_of(strategies(), [&](const StrategyKind* kind) {
    return kind->old_name == name;
  });
}

bool is_without_ps(std::string_view name) {
  const auto of_name = [&](const StrategyKind* kind) { return kind->is_called(name); };
  const auto with_ps = [&](const StrategyKind* kind) { return of_name(kind) && kind->has_ps(); };
  return std::ranges::any_of(strategies(), of_name) && std::ranges::none_of(strategies(), with_ps);
}

const StrategyKind& default_strategy(ClusterKind cluster) {
  return **std::ranges::find(strategies(), cluster, &StrategyKind::cluster);
}

const StrategyKind& strategy_kind(const Cluster& cluster) {
  const bool chosen = cluster.strategy.name == kAutomatic;
  return chosen ? automatic_strategy(cluster) : strategy_kind(cluster.strategy, kind_of(cluster));
}

const StrategyKind& strategy_kind(const Strategy& strategy, ClusterKind cluster) {
  const bool usual = strategy.name.empty() || strategy.name == kAutomatic;
  return usual ? default_strategy(cluster) : strategy_named(strategy.name, cluster);
}

std::string strategy_name(const Cluster& cluster) {
  return std::string(strategy_kind(cluster).name);
}

std::string why_no_sync_batch_norm(const Cluster& cluster) {
  const bool workers = cluster.distributed() && strategy_kind(cluster).shares_each_step();
  if (!workers && cluster.towers == 1) {
    return "needs an all-reduce (--ps 0 --workers N) or --towers, whose parts of a batch are "
           "computed at once";
  }
  if (workers && cluster.towers > 1) return "does not go with --towers under an all-reduce";
  if (workers && cluster.train.accumulate > 1)
    return "does not go with --accumulate under an all-reduce";
  if (device_kind(cluster.device.kind).is_simulated) {
    return "needs a device that computes on the host: --device cpu";
  }
  return "";
}

namespace {

// Returns why parameter servers cannot apply the rules of these variables; empty when they can.
std::string why_not_by_code(const std::vector<VariableSpec>& variables) {
  const auto found = std::ranges::find_if(
      variables, [](const VariableSpec& each) { return each.trained && each.rule.by_code(); });
  if (found == variables.end()) return "";
  return fmt::format(
      "applies rules on the parameter servers, and rule {} of '{}' is code of the workers: use "
      "--strategy allreduce without parameter servers, local_sgd, or a rule of Paceline",
      found->rule.name(), found->name);
}

}  // namespace

JoinedStrategy join_strategy(const JoinOptions& options, std::vector<VariableSpec> variables) {
  const Cluster& cluster = options.cluster;
  const StrategyKind& strategy = strategy_kind(cluster);
  if (strategy.cluster != kind_of(cluster)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[strategy] '{}' {}", strategy.name, needs_of(strategy.cluster)));
  }
  const std::string why_not = cluster.train.sync_batch_norm ? why_no_sync_batch_norm(cluster) : "";
  if (!why_not.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "[strategy] batch norm of the whole batch (--sync-batch-norm) " + why_not);
  }
  std::string why;
  if (strategy.why_not_cluster != nullptr) {
    why = strategy.why_not_cluster(cluster, cluster.workers());
  }
  if (why.empty() && strategy.why_not_variables != nullptr) {
    why = strategy.why_not_variables(variables);
  }
  if (why.empty() && !strategy.workers_apply()) why = why_not_by_code(variables);
  if (!why.empty()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("--strategy {} {}", strategy.name, why));
  }
  JoinOptions of_strategy = options;
  of_strategy.cluster.strategy = settled(strategy, cluster.strategy);
  JoinedStrategy made = strategy.make(of_strategy, std::move(variables));
  if (cluster.train.accumulate <= 1) return made;
  return accumulate(std::move(made), cluster.train.accumulate, options.pool);
}

}  // namespace paceline
