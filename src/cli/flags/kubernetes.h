// Reads the cluster that an indexed Job of Kubernetes, or a JobSet, describes to each of its pods.
#pragma once

#include <vector>

#include "cli/flags/command_line.h"
#include "cli/flags/launch_environment.h"

namespace paceline {

/// Returns --cluster, --task, --placed and --bind for this pod.
///
/// - $JOB_COMPLETION_INDEX is set in each pod of an indexed Job.
/// - The manifest sets $JOB_NAME, the name of the Job, from a label, and $JOB_SERVICE, the headless
///   service by which pods find each other.
/// - If the names of Jobs end in -ps-0 and -worker-0, as in a JobSet with the groups ps and worker,
///   the first Job has all parameter servers and the second all workers. Otherwise the first pods
///   of the Job are the parameter servers.
///
/// Throws kUsage, which names the variables, if they are missing or contradict the flags.
std::vector<GivenFlag> flags_of_kubernetes(const Environment& environment, const GivenTasks& tasks);

}  // namespace paceline
