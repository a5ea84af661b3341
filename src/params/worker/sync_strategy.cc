#include "params/worker/sync_strategy.h"

#include <utility>

#include "params/worker/async_strategy.h"

namespace paceline {

// The address of ps 0 travels in the declaration, since a ps that outlives jobs knows no other one.
Distribution make_sync_strategy(const DistributionOptions& options,
                                std::vector<VariableSpec> variables) {
  const Cluster& cluster = options.cluster;
  PsStoreOptions ps = ps_store_options(options);
  ps.aggregation = rounds_of(cluster.spec, cluster.replicas_to_aggregate,
                             cluster.fold_late ? LateContribution::kFold : LateContribution::kDrop);
  return join_ps(ps, options, std::move(variables));
}

AggregationSpec rounds_of(const ClusterSpec& spec, int replicas, LateContribution late) {
  return {.kind = AggregationKind::kRounds,
          .replicas = replicas,
          .late = late,
          .num_ps = std::int32_t(spec.ps.size()),
          .coordinator = spec.ps.size() > 1 ? spec.ps.front() : ""};
}

}  // namespace paceline
