// Training without parameter servers: the workers average their contributions.
#pragma once

#include <memory>
#include <vector>

#include "params/distribution.h"

namespace paceline {

class CollectiveStore;
class RoundFence;

Distribution make_allreduce_strategy(const DistributionOptions& options,
                                     std::vector<VariableSpec> variables);
/// With `rounds`, which must outlive it, the members commit these with each step.
std::shared_ptr<CollectiveStore> join_allreduce(const DistributionOptions& options,
                                                std::vector<VariableSpec> variables,
                                                RoundFence* rounds);

}  // namespace paceline
