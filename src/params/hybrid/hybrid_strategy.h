// Sparse variables on parameter servers, dense ones by all-reduce.
#pragma once

#include <string>
#include <vector>

#include "params/joined_strategy.h"

namespace paceline {

/// Joins both stores. The cluster and the variables must suit the strategy (why_not_hybrid).
JoinedStrategy make_hybrid_strategy(const JoinOptions& options,
                                    std::vector<VariableSpec> variables);

/// Why the cluster, with this many workers, does not suit the strategy: "needs …", "does not go
/// with …"; empty when it does.
std::string why_not_hybrid(const Cluster& cluster, int workers);
/// Why the variables do not suit the strategy; empty when they do.
std::string why_not_hybrid(const std::vector<VariableSpec>& variables);

}  // namespace paceline
