// The strategies whose variables all lie on parameter servers: asynchronous training, stale
// synchronous parallel (Ho et al., NIPS 2013), and synchronous rounds (Chen et al., arXiv
// 1604.00981). The traits of a strategy determine what the parameter servers do with a contribution
// (aggregation_of).
#pragma once

#include <memory>
#include <vector>

#include "params/joined_strategy.h"
#include "params/worker/ps_store.h"

namespace paceline {

/// Returns those options of a ps store that follow from `options`, which every strategy has.
PsStoreOptions ps_store_options(const JoinOptions& options);
/// Joins the job, warns the user of settings that have no effect, and prints the placement if the
/// user has asked for it.
std::shared_ptr<PsStore> join_ps_store(const JoinOptions& options,
                                       std::vector<VariableSpec> variables);

JoinedStrategy make_ps_strategy(const JoinOptions& options, std::vector<VariableSpec> variables);

}  // namespace paceline
