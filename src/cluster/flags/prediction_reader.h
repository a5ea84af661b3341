// The flags of predictions.
#pragma once

#include "cluster/flags/command_line.h"
#include "paceline/run_options.h"

namespace paceline {

/// Where a prediction is asked for, or --strategy auto chooses, flags about parameter servers and
/// workers may be given without their numbers: leaves these open.
void leave_counts_open(FlagValues& values);

/// The links of emulated hosts (--lab-hosts) are as fast as they are made. Throws kUsage.
PredictionOptions read_prediction(const FlagValues& values);

}  // namespace paceline
