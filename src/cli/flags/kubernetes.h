// The cluster as an indexed Job of Kubernetes, or a JobSet, tells it to each of its pods.
#pragma once

#include <vector>

#include "cli/flags/command_line.h"
#include "cli/flags/launch_environment.h"

namespace paceline {

/// Returns --cluster, --task, --placed and --bind of this pod. $JOB_COMPLETION_INDEX is there in
/// each pod of an indexed Job; the manifest gives $JOB_NAME, the name of the Job, from a label, and
/// $JOB_SERVICE, the headless service by which pods find each other. Of Jobs whose names end in
/// -ps-0 and -worker-0, as a JobSet with the groups ps and worker makes them, one has all parameter
/// servers and the other all workers; else the first pods of the Job are the parameter servers.
/// Throws kUsage, which names the variables, when they are missing or contradict the flags.
std::vector<GivenFlag> flags_of_kubernetes(const Environment& environment, const GivenTasks& tasks);

}  // namespace paceline
