// The least time of a synchronous round, in which everything waits for the last contribution.
#pragma once

#include <vector>

#include "evidence/step_schedule.h"

namespace paceline {

/// What one part of a round uses: seconds by variable, of each resource. A resource serves the
/// variables one after the other, in the order in which they are needed or ready.
using SecondsByResource = std::vector<std::vector<double>>;

/// One of the two parts of a round that do not overlap.
struct RoundPart {
  SecondsByResource last;   // until the last worker has what it needs, or has given
  SecondsByResource first;  // the same of the first worker, which is the least that each one uses
};

/// Returns the seconds from the close of a round to the close of the next one, at least. No value
/// is updated before the contributions of all workers are whole. So the values that are needed up
/// to a moment of the step come first, then the kernels up to a moment when a contribution is
/// ready, and then it and all that are ready later.
double round_seconds(const StepSchedule& schedule, const RoundPart& values,
                     const RoundPart& contributions);

}  // namespace paceline
