// The interval in which most measured speeds lie, by how wrong predictions were.
#pragma once

#include "predict/limit_kind.h"

namespace paceline {

/// Factors of the predicted speed.
struct SpeedInterval {
  double low = 1, high = 1;
};

/// 80 of 100 measured speeds of jobs with that limit were between these (docs/foresight.md,
/// bench/foresight.csv).
SpeedInterval interval_of(LimitKind limit);

}  // namespace paceline
