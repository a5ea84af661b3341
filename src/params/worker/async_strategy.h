// Asynchronous training with parameter servers.
#pragma once

#include <vector>

#include "params/distribution.h"
#include "params/worker/ps_store.h"

namespace paceline {

/// The ps store's options that follow from what any strategy is made with.
PsStoreOptions ps_store_options(const DistributionOptions& options);
/// Joins; says what the user would wonder about, and prints the placement if that was asked for.
Distribution join_ps(const PsStoreOptions& how, const DistributionOptions& options,
                     std::vector<VariableSpec> variables);

Distribution make_async_strategy(const DistributionOptions& options,
                                 std::vector<VariableSpec> variables);

}  // namespace paceline
