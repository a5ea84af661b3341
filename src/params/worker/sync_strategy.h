// Synchronous rounds with parameter servers (Chen et al., arXiv 1604.00981).
#pragma once

#include <vector>

#include "params/distribution.h"
#include "params/protocol/aggregation.h"

namespace paceline {

/// The workers go in rounds: the mean of a contribution of each is applied once, when
/// Cluster::replicas_to_aggregate of them are there.
Distribution make_sync_strategy(const DistributionOptions& options,
                                std::vector<VariableSpec> variables);

/// The rounds of a cluster's parameter servers, as the chief declares them.
AggregationSpec rounds_of(const ClusterSpec& spec, int replicas, LateContribution late);

}  // namespace paceline
