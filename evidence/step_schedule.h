// The moments of a step at which a worker needs values and has contributions ready.
#pragma once

#include <span>
#include <vector>

#include "exec/plan.h"

namespace paceline {

/// The use of one variable by a step, in seconds from the step's begin. A variable that the step
/// does not read or does not update has the moment 0.
struct VariableMoments {
  double needed = 0;  // just before the first kernel that reads it
  double ready = 0;   // once its contribution is made and nothing reads it any more
};

struct StepSchedule {
  double seconds = 0;                      // of the whole step's kernels
  std::vector<VariableMoments> variables;  // by VariableId
};

/// Returns the schedule of a step whose kernels take `seconds` in all, each by its part of the
/// FLOPs, as on a simulated device; equally long ones when the step has no FLOPs.
StepSchedule step_schedule(const Plan& plan, std::size_t variables, double seconds);

}  // namespace paceline
