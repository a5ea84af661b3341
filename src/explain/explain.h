// Says what holds a run back, from the numbers of its report alone.
#pragma once

#include <vector>

#include "explain/finding.h"
#include "run/report/report.h"

namespace paceline {

/// All causes that the numbers show and whose cure would bring something, the one that would bring
/// most first.
std::vector<Finding> findings_of(const Report& run);
/// Returns the first of these causes. Without one, returns a finding that is no alarm and tells how
/// near the run came to the limit of its machine. Its sentence is empty when no step was timed.
Finding explain(const Report& run);
/// The text of `explain`, for the last lines of a run; empty when no step was timed.
std::string explanation(const Report& run);

}  // namespace paceline
