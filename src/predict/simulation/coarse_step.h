// A step with fewer variables, so that jobs of very many workers are simulated in seconds.
#pragma once

#include <cstddef>

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Returns the step with dense variables that are first read one after the other taken together,
/// until a group has its part of all bytes. A group is needed when the first of its variables is,
/// and is ready when the last one is. The time that each message costs stays.
SimulatedStep coarse_step(const SimulatedStep& step, std::size_t groups_wanted);

}  // namespace paceline
