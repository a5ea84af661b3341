// Says what holds a run back, from the numbers of its report alone.
#pragma once

#include <vector>

#include "explain/finding.h"
#include "run/report/report.h"

namespace paceline {

/// Returns all causes that the numbers show and whose cure would bring something, by gain, the
/// largest first. Tasks that stood still, and then large causes from outside the run, come before
/// all others.
std::vector<Finding> findings_of(const Report& run);
/// Returns the first of these causes. If there is none, the finding tells how near the run came to
/// the limit of its machine; it is an alarm only if the run is slow and no number says why. Its
/// sentence is empty if no step was timed.
Finding explain(const Report& run);
/// Returns the text of `explain`, for the last lines of a run; empty if no step was timed.
std::string explanation(const Report& run);

}  // namespace paceline
