// The variables of a job as the stores that the workers share know them.
#pragma once

#include "params/protocol/outer_schedule.h"
#include "predict/simulation/simulated_job.h"

namespace paceline {

/// True for workers that make local steps between their rounds.
bool makes_local_steps(const SimulatedJob& job);

/// Returns the step's variables with the outer rule, of which every worker trains copies. It has no
/// actions.
SimulatedStep outer_step(const SimulatedJob& job);
/// When the workers exchange which of them.
OuterSchedule outer_schedule(const SimulatedJob& job);

}  // namespace paceline
