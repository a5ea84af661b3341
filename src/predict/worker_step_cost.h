// The work of a step of one worker of a cluster.
#pragma once

#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "predict/step_cost.h"

namespace paceline {

/// True when the tasks read each other's memory: then hardly a byte is sent, and none is rounded.
bool shares_memory(const Cluster& cluster);

/// Returns the work of the step as this process, or a worker that it starts, would make it.
StepCost step_work(PlanRequest request, const Cluster& cluster, const RunOptions& run);

}  // namespace paceline
