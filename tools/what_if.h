// The speed that a run would have had, had it been distributed otherwise.
#pragma once

#include <string>

#include "run/report/report.h"

namespace paceline {

/// `changes` is "ps=2,gbps=10,workers=8,wire=bfloat16,strategy=sync,accumulate=2": some of them.
/// The predictor says by how much that would change the speed, and the run says from which speed.
/// Throws kUsage for changes that are not known or do not fit the run, and kFailedPrecondition for
/// a run that cannot be predicted: of a program of one's own, or of tasks that were started one by
/// one.
std::string what_if(const Report& run, const std::string& changes);

}  // namespace paceline
