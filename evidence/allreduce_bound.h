// The speed that hardware allows workers that train by all-reduce.
#pragma once

#include "evidence/speed_bound.h"
#include "evidence/step_schedule.h"
#include "predict/step_cost.h"

namespace paceline {

/// Returns the bound of workers that make the steps of `schedule` together. None begins to read a
/// variable before its sum has arrived and is applied, and none updates a value before all sums
/// have arrived (round_seconds). The machine's memory carries each contribution that is read, one
/// sum that is written, and the update that every worker makes of its own values. Each of m hosts
/// sends and receives 2 (m − 1) / m times the bytes of the contributions: this is the least
/// possible if all hosts need the sum (Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms,
/// 2009).
SpeedBound allreduce_bound(const StepCost& work, const StepSchedule& schedule,
                           const JobHosts& hosts);

}  // namespace paceline
