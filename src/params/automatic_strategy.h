// The strategy that --strategy auto stands for.
#pragma once

#include <string_view>

#include "paceline/cluster.h"

namespace paceline {

/// Workers on several hosts make local steps, since their links cannot be taken for fast. On one
/// host, and in one process, the strategy is the default of the kind of cluster. All tasks of a job
/// choose the same: nothing but the addresses counts.
std::string_view automatic_strategy(const Cluster& cluster);

}  // namespace paceline
