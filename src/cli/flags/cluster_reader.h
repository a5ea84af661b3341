// The cluster of a job, from its flags.
#pragma once

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"

namespace paceline {

/// The job as the flags say it, complete with defaults. Throws kUsage that names the flag and what
/// is allowed.
Cluster read_cluster(const FlagValues& values);

}  // namespace paceline
