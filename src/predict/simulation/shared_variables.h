// The variables of a job as the stores that the workers share know them.
#pragma once

#include "params/hybrid/hybrid_steps.h"
#include "params/protocol/outer_schedule.h"
#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Returns the step's variables with the outer rule, of which every worker trains copies. It has no
/// actions.
SimulatedStep outer_step(const SimulatedJob& job);
/// When the workers exchange which of them.
OuterSchedule outer_schedule(const SimulatedJob& job);

/// Returns the part of the step's variables that one of the stores of `hybrid` keeps, with their
/// numbers there.
SimulatedStep part_of_step(const SimulatedStep& step, const HybridPlaces& places, bool sparse);

}  // namespace paceline
