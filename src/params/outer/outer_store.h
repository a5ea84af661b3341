// Local steps with an outer rule (DiLoCo, arXiv 2311.08105). Each worker trains copies of its own.
// Now and then it contributes to a store below how its copies differ from the common values. That
// store has rounds, or applies each difference as it arrives (arXiv 2401.09135).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "params/joined_strategy.h"
#include "params/outer/outer_options.h"

namespace paceline {

/// Returns the name under which a worker's saved state keeps a slot of the rule of its local steps.
/// The state has these slots among the worker's local variables.
std::string inner_slot_name(std::string_view variable, std::string_view slot);
bool is_inner_slot(std::string_view name);

/// Returns how many rounds of the store below begin within `steps` local steps.
std::int64_t outer_rounds(const std::vector<VariableSpec>& variables, const OuterOptions& how,
                          std::int64_t steps);

/// Makes local steps over `below`, which was made for outer_variables().
JoinedStrategy with_outer_rule(JoinedStrategy below, std::vector<VariableSpec> variables,
                               const OuterOptions& how, const JoinOptions& options);

}  // namespace paceline
