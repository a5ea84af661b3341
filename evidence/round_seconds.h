// The least time of a synchronous round, in which all workers wait for the last contribution.
#pragma once

#include <vector>

#include "evidence/step_schedule.h"

namespace paceline {

/// The seconds that one part of a round takes of each resource, by variable. A resource serves the
/// variables one after another, in the order in which they are needed or ready.
using SecondsByResource = std::vector<std::vector<double>>;

/// One of the two parts of a round that do not overlap.
struct RoundPart {
  SecondsByResource last;  // the seconds until the last worker has its values, or has contributed
  // The seconds until the first worker has its values, or has contributed: the least that any
  // worker needs.
  SecondsByResource first;
};

/// Returns the least seconds from the close of a round to the close of the next one. No value is
/// updated before the contributions of all workers are complete. So the parts follow one another:
/// the values that are needed up to a moment of the step, the kernels up to a moment at which a
/// contribution is ready, and then that contribution and all later ones.
double round_seconds(const StepSchedule& schedule, const RoundPart& values,
                     const RoundPart& contributions);

}  // namespace paceline
