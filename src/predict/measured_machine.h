// A run's facts about its machine: the bound of its speed, and the pace of its kernels.
#pragma once

#include "paceline/run_options.h"

namespace paceline {

/// Makes the observer that adds to the report of a run on one machine how fast that machine could
/// be, and keeps for later predictions how long the kernels of a step take.
MakeObserver measure_machine();

}  // namespace paceline
