// Reads the cluster that Slurm describes to each task that srun has started.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/flags/launch_environment.h"

namespace paceline {

/// Returns the names of a node list such as "gpu[01-03,7],login,r[1-2]n[0-1]". Throws kUsage that
/// names `variable`.
std::vector<std::string> slurm_nodes(const std::string& variable, std::string_view list);

/// Returns the numbers of a list such as "2(x3),1": 2, 2, 2, 1. Throws kUsage that names
/// `variable`.
std::vector<int> slurm_counts(const std::string& variable, std::string_view list);

/// Returns --cluster, --task and --placed of this process, one of several in a step of srun. The
/// first `ps` processes are parameter servers, and the others, at least one, are workers. The
/// addresses are those of the nodes, with ports that follow from the numbers of the job and the
/// step. Throws kUsage, which names the variables, if they are missing or contradict each other,
/// and for heterogeneous jobs.
std::vector<GivenFlag> flags_of_slurm(const Environment& environment, int ps);

}  // namespace paceline
