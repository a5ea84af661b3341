// The strategy of one process.
#pragma once

#include <vector>

#include "params/joined_strategy.h"

namespace paceline {

JoinedStrategy make_local_strategy(const JoinOptions& options, std::vector<VariableSpec> variables);

}  // namespace paceline
