// Runs a job in virtual time.
#pragma once

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Thrown if SimulatedJob::gives_up returns true.
struct GivenUp {};

/// Returns the speed of the job's counted steps. Throws kInvalidArgument for an unknown strategy,
/// and for variables that do not suit the strategy; throws GivenUp if the job's gives_up returns
/// true.
SimulatedSpeed simulate(const SimulatedJob& job);

}  // namespace paceline
