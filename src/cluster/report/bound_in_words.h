// Says how near a run came to what its machine could do.
#pragma once

#include <string>

#include "cluster/report/report.h"

namespace paceline {

/// "At this machine's roof, 212 GFLOP/s and 58.1 GB/s, kernels and rules would allow 101 steps/s:
/// the run made 0.92 of that." It compares all workers of the run with the section "bound"
/// (docs/report.md). Empty when one of the two is not known.
std::string bound_in_words(const Report& run);

}  // namespace paceline
