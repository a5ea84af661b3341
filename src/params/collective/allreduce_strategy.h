// Training without parameter servers: the workers average their contributions.
#pragma once

#include <vector>

#include "params/distribution.h"

namespace paceline {

Distribution make_allreduce_strategy(const DistributionOptions& options,
                                     std::vector<VariableSpec> variables);

}  // namespace paceline
