// The cluster of a job, from its flags.
#pragma once

#include <string>

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"

namespace paceline {

/// The job as the flags say it, complete with defaults. Throws kUsage that names the flag and what
/// is allowed.
Cluster read_cluster(const FlagValues& values);
/// Returns a sentence that tells the new name of a strategy that the flags call by its old one;
/// empty when they do not.
std::string old_name_hint(const FlagValues& values, const Cluster& cluster);

}  // namespace paceline
