// Runs a job in virtual time.
#pragma once

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Thrown when SimulatedJob::gives_up says so.
struct GivenUp {};

/// Returns the speed of the job's counted steps. Throws kInvalidArgument for a strategy that there
/// is not, and for variables that do not suit it; and GivenUp.
SimulatedSpeed simulate(const SimulatedJob& job);

}  // namespace paceline
