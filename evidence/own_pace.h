// The pace of a worker by itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "evidence/speed_bound.h"
#include "evidence/step_schedule.h"
#include "exec/parameter_store.h"

namespace paceline {

/// A resource that limits one worker alone: each of its steps takes this many seconds.
SharedResource pace_of(std::string name, double seconds, std::size_t worker, std::size_t workers);

/// Returns the resources that limit one of several workers alone: its device, and a variable's path
/// from one step to the next if that takes longer. `return_s` has, by variable, the time from the
/// moment at which a contribution is ready until the new value has arrived.
std::vector<SharedResource> own_pace(const StepSchedule& schedule,
                                     std::span<const VariableSpec> specs,
                                     std::span<const double> return_s, std::size_t worker,
                                     std::size_t workers);

}  // namespace paceline
