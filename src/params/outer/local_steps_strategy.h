// Local steps in a cluster: an outer rule over parameter servers, in rounds or asynchronous, or
// over an all-reduce.
#pragma once

#include <vector>

#include "params/distribution.h"

namespace paceline {

Distribution make_local_steps_strategy(const DistributionOptions& options,
                                       std::vector<VariableSpec> variables);

}  // namespace paceline
