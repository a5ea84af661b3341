// The speed that hardware allows workers that train with parameter servers.
#pragma once

#include <span>

#include "evidence/speed_bound.h"
#include "evidence/step_schedule.h"
#include "params/protocol/placement.h"
#include "predict/step_cost.h"

namespace paceline {

/// Returns the bound of workers that each make the steps of `schedule`. No worker is faster than
/// its device. None begins to read a variable before its own last contribution to it is applied and
/// the value has returned. The bytes of values and contributions pass the links of both hosts;
/// tasks of one host use no link. The rules' bytes, and further gradients that they sum, pass the
/// machine's memory. In rounds (several contributions for one update), nothing is updated before
/// the contributions of all workers are complete, so values and contributions pass the links one
/// after another (round_seconds).
SpeedBound ps_bound(const StepCost& work, const StepSchedule& schedule,
                    std::span<const Piece> pieces, const JobHosts& hosts);

}  // namespace paceline
