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
/// If `rounds` is not null, the members commit these rounds with each step; `rounds` must outlive
/// the store.
std::shared_ptr<CollectiveStore> join_allreduce(const JoinOptions& options,
                                                std::vector<VariableSpec> variables,
                                                RoundFence* rounds);

}  // namespace paceline
