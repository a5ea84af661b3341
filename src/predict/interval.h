// The interval in which most measured speeds lie, by how wrong predictions were.
#pragma once

#include <cstdint>

#include "run/report/limit.h"

namespace paceline {

/// Factors of the predicted speed.
struct SpeedInterval {
  double low = 1, high = 1;
};

/// Where the time of a step's kernels on the cores of a machine is known from.
enum class KernelsFrom : std::uint8_t {
  kSteps,         // that were timed
  kBesideOthers,  // the same, while other programs had the cores
  kCosts,         // FLOPs and bytes: nothing was measured
};

/// 80 of 100 measured speeds of jobs with that limit were between these (docs/predictions.md,
/// bench/predictions.csv). Steps that other programs disturbed were maybe slower than those to
/// come, where kernels are the limit. Where nothing was measured any limit may be another one, and
/// models of small ops made up to 16 times fewer steps than their FLOPs and bytes say.
SpeedInterval interval_of(Limit limit, KernelsFrom kernels = KernelsFrom::kSteps);

}  // namespace paceline
