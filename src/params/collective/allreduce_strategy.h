// Training without parameter servers: the workers average their contributions.
#pragma once

#include <memory>
#include <vector>

#include "params/joined_strategy.h"

namespace paceline {

class CollectiveStore;
class RoundFence;

JoinedStrategy make_allreduce_strategy(const JoinOptions& options,
                                       std::vector<VariableSpec> variables);
/// With `rounds`, which must outlive the store, the members commit these rounds with each step.
std::shared_ptr<CollectiveStore> join_allreduce(const JoinOptions& options,
                                                std::vector<VariableSpec> variables,
                                                RoundFence* rounds);

}  // namespace paceline
