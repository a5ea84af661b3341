// The strategies whose variables all lie on parameter servers: what these do with a contribution
// follows from the traits of the strategy (aggregation_of). Asynchronous training, stale
// synchronous parallel (Ho et al., NIPS 2013), synchronous rounds (Chen et al., arXiv 1604.00981).
#pragma once

#include <memory>
#include <vector>

#include "params/joined_strategy.h"
#include "params/worker/ps_store.h"

namespace paceline {

/// Returns the options of the ps store that follow from the options of any strategy.
PsStoreOptions ps_store_options(const JoinOptions& options);
/// Joins the job, tells the user of settings that have no effect, and prints the placement if that
/// was asked for.
std::shared_ptr<PsStore> join_ps_store(const JoinOptions& options,
                                       std::vector<VariableSpec> variables);

JoinedStrategy make_ps_strategy(const JoinOptions& options, std::vector<VariableSpec> variables);

}  // namespace paceline
