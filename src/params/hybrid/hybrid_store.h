// Sparse variables on parameter servers and dense variables by all-reduce, in one job: two stores
// that make each step together.
#pragma once

#include <memory>
#include <vector>

#include "params/joined_strategy.h"

namespace paceline {

class RoundFence;

/// Joins the two stores into one. `sparse` keeps the sparse variables, and `dense` the others, each
/// in the order of `variables`. The members of the all-reduce commit each step. `rounds`, with
/// which `dense` was made, makes the same rounds on the ps tasks, so a step counts in both stores
/// or in none. Workers' states and progress go through ps 0.
JoinedStrategy with_both(JoinedStrategy sparse, JoinedStrategy dense, RoundFence& rounds,
                         std::vector<VariableSpec> variables);

/// The variables of one of the two stores.
std::vector<VariableSpec> part_of(const std::vector<VariableSpec>& variables, bool sparse);

}  // namespace paceline
