// Runs a job in virtual time.
#pragma once

#include <span>
#include <string_view>

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Thrown when SimulatedJob::gives_up says so.
struct GivenUp {};

/// Returns the speed of the job's counted steps. Throws kInvalidArgument for a strategy that the
/// simulator does not know, and GivenUp.
SimulatedSpeed simulate(const SimulatedJob& job);

/// The strategies that it knows, by name.
std::span<const std::string_view> simulated_strategies();

}  // namespace paceline
