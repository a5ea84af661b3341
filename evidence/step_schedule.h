// The moments of a step at which a worker needs values, and at which its contributions are ready.
#pragma once

#include <span>
#include <vector>

#include "exec/plan.h"

namespace paceline {

/// A step's use of one variable, in seconds from the start of the step. A variable that the step
/// does not read or does not update has the moment 0.
struct VariableMoments {
  double needed = 0;  // the time just before the first kernel that reads it
  // The time once its contribution is made and nothing reads the variable any more.
  double ready = 0;
};

struct StepSchedule {
  double seconds = 0;                      // all kernels of the step
  std::vector<VariableMoments> variables;  // by VariableId
};

/// Returns the schedule of a step whose kernels take `seconds` in all. Each takes its part by
/// FLOPs, as on a simulated device; if the step has no FLOPs, all take equal time.
StepSchedule step_schedule(const Plan& plan, std::size_t variables, double seconds);

}  // namespace paceline
