// The pace of a worker by itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "evidence/speed_bound.h"
#include "evidence/step_schedule.h"
#include "exec/parameter_store.h"

namespace paceline {

/// Something that holds back one of several workers alone: each of its steps takes so long.
SharedResource pace_of(std::string name, double seconds, std::size_t worker, std::size_t workers);

/// Returns what holds one of several workers back that shares nothing with the others: its device,
/// and where a variable's way from one step to the next takes longer, that way. `return_s` has the
/// time, by variable, from the moment when a contribution is ready until the new value is there.
std::vector<SharedResource> own_pace(const StepSchedule& schedule,
                                     std::span<const VariableSpec> specs,
                                     std::span<const double> return_s, std::size_t worker,
                                     std::size_t workers);

}  // namespace paceline
