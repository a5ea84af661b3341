// The number of towers that a task can have.
#pragma once

#include "paceline/cluster.h"
#include "params/towers/tower_mean.h"

namespace paceline {

/// Throws kUsage, naming --towers, when it is not from 1 to kMostTowers, or when the towers are
/// groups of cores and this machine has fewer `cores`, or the task fewer threads.
void check_towers(const Cluster& cluster, int cores);

}  // namespace paceline
