// Local steps in a cluster: an outer rule over parameter servers, in rounds or asynchronous, or
// over an all-reduce.
#pragma once

#include <vector>

#include "params/joined_strategy.h"

namespace paceline {

JoinedStrategy make_local_steps_strategy(const JoinOptions& options,
                                         std::vector<VariableSpec> variables);

}  // namespace paceline
