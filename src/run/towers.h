// The number of towers that a task can have.
#pragma once

#include "paceline/cluster.h"
#include "params/towers/tower_mean.h"

namespace paceline {

/// Throws kUsage, naming --towers, if the number is not from 1 to kMostTowers; and, for towers that
/// are groups of cores, if this machine has fewer `cores` or the task fewer threads.
void check_towers(const Cluster& cluster, int cores);

}  // namespace paceline
