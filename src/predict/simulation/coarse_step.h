// A step with fewer variables, so that the simulation of very many workers takes seconds.
#pragma once

#include <cstddef>

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Returns the step with its dense variables in groups, each of which acts as one variable.
/// Variables that are first read one after another join a group until the group has its part of all
/// bytes. A group is needed when its first variable is, and ready when its last variable is. The
/// cost of each message stays.
SimulatedStep coarse_step(const SimulatedStep& step, std::size_t groups_wanted);

}  // namespace paceline
