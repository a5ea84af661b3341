#include "params/strategy/strategy_kind.h"

#include <utility>

namespace paceline {

ClusterKind kind_of(const Cluster& cluster) {
  if (!cluster.distributed()) return ClusterKind::kOneProcess;
  const bool ps = !cluster.spec.ps.empty() || cluster.launch.ps > 0;
  return ps ? ClusterKind::kWithPs : ClusterKind::kWorkersOnly;
}

ClusterKind kind_of(int ps, int workers) {
  if (ps > 0) return ClusterKind::kWithPs;
  return workers > 1 ? ClusterKind::kWorkersOnly : ClusterKind::kOneProcess;
}

Strategy settled(const StrategyKind& kind, Strategy options) {
  options.name = kind.name;
  if (kind.fix != nullptr) kind.fix(options);
  return options;
}

AggregationSpec rounds_of(const ClusterSpec& spec, int replicas, LateContribution late) {
  return {.kind = AggregationKind::kRounds,
          .replicas = replicas,
          .late = late,
          .num_ps = std::int32_t(spec.ps.size()),
          .coordinator = spec.ps.size() > 1 ? spec.ps.front() : ""};
}

AggregationSpec aggregation_of(const StrategyKind& kind, const Strategy& options,
                               const ClusterSpec& spec) {
  if (kind.limits_lead) {
    return {.kind = AggregationKind::kBounded, .staleness = options.staleness};
  }
  if (kind.ps_closes_rounds(options)) return rounds_of(spec, options.replicas, options.late);
  if (!kind.splits_variables()) return {};
  AggregationSpec committed = rounds_of(spec, 0, LateContribution::kDrop);
  committed.workers_commit = true;
  return committed;
}

}  // namespace paceline
