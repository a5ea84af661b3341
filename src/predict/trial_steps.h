// A few real steps of a model on this machine, timed for a prediction.
#pragma once

#include <span>

#include "exec/parameter_store.h"
#include "exec/plan.h"
#include "kernels/device.h"
#include "predict/pace_cache.h"

namespace paceline {

/// The time of the kernels of some steps, and how many of them were timed.
struct TrialPace {
  Pace pace;
  int steps = 0;
};

/// Makes steps in this process, with all threads of the device, on drawn inputs, until another one
/// would end after `seconds`, but at least one; nothing of them is kept. Numbers are standard
/// normal, ids of rows are drawn among the rows, and all else is 0. Throws kInvalidArgument when
/// the step needs more memory than this machine has, and what an op throws that takes no such
/// inputs.
TrialPace time_steps(const PlanRequest& request, std::span<const VariableSpec> specs,
                     const DeviceOptions& device, double seconds);

}  // namespace paceline
