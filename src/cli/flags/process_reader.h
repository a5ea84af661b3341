// Reads from its flags a process's part in the job (Cluster::Process), and its cluster.
#pragma once

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"

namespace paceline {

/// The largest number of tasks of a job in a cluster.
constexpr int kMostTasks = 1024;

/// Sets that and what belongs to it: the tasks to start here, or the spec, the task and where
/// it listens. Throws kUsage that names the flag and what is allowed.
void read_process(const FlagValues& values, Cluster& cluster);

}  // namespace paceline
