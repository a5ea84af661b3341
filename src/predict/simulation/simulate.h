// Runs a job in virtual time.
#pragma once

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Returns the speed of the job's counted steps. Throws kInvalidArgument for a strategy that there
/// is not, and for variables that do not suit it.
SimulatedSpeed simulate(const SimulatedJob& job);

}  // namespace paceline
