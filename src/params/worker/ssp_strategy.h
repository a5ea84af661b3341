// Stale synchronous parallel training with parameter servers (Ho et al., NIPS 2013).
#pragma once

#include <vector>

#include "params/distribution.h"

namespace paceline {

/// As asynchronous training, but a worker waits while it is more than Cluster::staleness own steps
/// ahead of the slowest member.
Distribution make_ssp_strategy(const DistributionOptions& options,
                               std::vector<VariableSpec> variables);

}  // namespace paceline
