// The speed that hardware allows to workers that train by all-reduce.
#pragma once

#include "evidence/speed_bound.h"
#include "evidence/step_schedule.h"
#include "predict/step_cost.h"

namespace paceline {

/// Returns the bound of workers that make the steps of `schedule` together. None begins to read a
/// variable before its sum is there and applied, and none updates a value before all sums are there
/// (round_seconds). The machine's memory is passed by each
/// contribution that is read, by one sum that is written, and by the update that every worker
/// makes of its own values. Of m hosts each sends and receives 2 (m − 1) / m times the bytes of the
/// contributions: less is not possible where all are to have the sum (Patarasuk & Yuan, Bandwidth
/// optimal all-reduce algorithms, 2009).
SpeedBound allreduce_bound(const StepCost& work, const StepSchedule& schedule,
                           const JobHosts& hosts);

}  // namespace paceline
