// Asynchronous training with parameter servers.
#pragma once

#include <memory>
#include <vector>

#include "params/distribution.h"
#include "params/worker/ps_store.h"

namespace paceline {

/// Returns the options of the ps store that follow from the options of any strategy.
PsStoreOptions ps_store_options(const DistributionOptions& options);
Distribution join_ps(const PsStoreOptions& how, const DistributionOptions& options,
                     std::vector<VariableSpec> variables);
/// Joins the job, tells the user of settings that have no effect, and prints the placement if that
/// was asked for.
std::shared_ptr<PsStore> join_ps_store(const PsStoreOptions& how,
                                       const DistributionOptions& options,
                                       std::vector<VariableSpec> variables);

Distribution make_async_strategy(const DistributionOptions& options,
                                 std::vector<VariableSpec> variables);

}  // namespace paceline
