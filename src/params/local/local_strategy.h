// The strategy of one process.
#pragma once

#include <vector>

#include "params/distribution.h"

namespace paceline {

Distribution make_local_strategy(const DistributionOptions& options,
                                 std::vector<VariableSpec> variables);

}  // namespace paceline
