// Reads, from its flags, a process's part in the job (Cluster::Process) and its cluster.
#pragma once

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"

namespace paceline {

/// The largest number of tasks of a job in a cluster.
constexpr int kMostTasks = 1024;

/// Sets the process's part and all that belongs to it: the tasks to start here; or the spec, the
/// task, and where the task listens. Throws kUsage that names the flag and the allowed values.
void read_process(const FlagValues& values, Cluster& cluster);

}  // namespace paceline
