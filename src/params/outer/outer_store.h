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

/// The name by which a worker's saved state has a slot of its local steps, as one of its local
/// variables.
std::string inner_slot_name(std::string_view variable, std::string_view slot);
bool is_inner_slot(std::string_view name);

/// Returns how many rounds the store below makes in this many steps.
std::int64_t outer_rounds(const std::vector<VariableSpec>& variables, const OuterOptions& how,
                          std::int64_t steps);

/// `below` was made for outer_variables().
/// - Own steps are local steps of one worker; global steps are local steps of all workers. A closed
///   round counts as the steps of each worker that led to it. Without rounds, a contribution counts
///   as the steps that led to it, so global steps are the sum over all workers.
/// - The rules of `variables`, clipping and schedules apply to the local steps. Slots stay with the
///   worker, and a checkpoint has them as a part of the worker's state. The steps since the last
///   exchange are not in a checkpoint: training that resumes makes them again.
/// - Reading, evaluating and saving use the common values, which only exchanges change.
/// - Only one plan trains: bind() throws kInvalidArgument for a second one. The pool and the
///   account of `options` are used as in one process.
JoinedStrategy with_outer_rule(JoinedStrategy below, std::vector<VariableSpec> variables,
                               const OuterOptions& how, const JoinOptions& options);

}  // namespace paceline
