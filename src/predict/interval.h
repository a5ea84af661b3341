// The interval in which most measured speeds lie, by how wrong predictions were.
#pragma once

#include "predict/limit_kind.h"

namespace paceline {

/// Factors of the predicted speed.
struct SpeedInterval {
  double low = 1, high = 1;
};

/// 80 of 100 measured speeds of jobs with that limit were between these (docs/foresight.md,
/// bench/foresight.csv). Where kernels of the cores are the limit, and the time of theirs is
/// estimated from FLOPs and bytes, it is much less sure.
SpeedInterval interval_of(LimitKind limit, bool estimates_kernels = false);

}  // namespace paceline
