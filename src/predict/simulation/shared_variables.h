// The variables of a job, in the form in which the stores that workers share keep them.
#pragma once

#include "params/hybrid/hybrid_steps.h"
#include "params/protocol/outer_schedule.h"
#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Returns a step without actions that has the job's variables with the outer rule, as the store
/// keeps them. Every worker trains copies of them.
SimulatedStep outer_step(const SimulatedJob& job);
/// Returns the schedule by which the workers exchange the variables of outer_step.
OuterSchedule outer_schedule(const SimulatedJob& job);

/// Returns the part of the step's variables that one of the stores of `hybrid` keeps, with their
/// indices there.
SimulatedStep part_of_step(const SimulatedStep& step, const HybridPlaces& places, bool sparse);

}  // namespace paceline
