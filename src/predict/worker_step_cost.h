// The work of a step of one worker of a cluster.
#pragma once

#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "predict/step_cost.h"

namespace paceline {

/// True if the tasks read each other's memory: then they send almost no bytes, and round no
/// numbers.
bool shares_memory(const Cluster& cluster);

/// Returns the work of a step in this process, or in a worker that this process starts.
StepCost step_work(PlanRequest request, const Cluster& cluster, const RunOptions& run);

}  // namespace paceline
