// The number of threads of this process that can run at once.
#pragma once

#include <optional>

namespace paceline {

/// Returns the number of cores that this process may use: those of its mask (taskset, cpusets), and
/// no more than the quota of its control groups gives, rounded up: 1.5 cores are 2. At least 1.
int usable_cores();

/// Returns the number for a mask of `in_mask` cores and a quota.
int usable_cores(int in_mask, std::optional<double> quota);

}  // namespace paceline
