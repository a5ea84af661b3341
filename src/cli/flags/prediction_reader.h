// The flags of predictions.
#pragma once

#include "cli/flags/command_line.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Leaves the numbers of parameter servers and workers open where flags are about these without
/// giving them, and a prediction is asked for or --strategy auto chooses.
void leave_counts_open(FlagValues& values);

/// The links of emulated hosts (--lab-hosts) are as fast as they are made. Throws kUsage.
PredictionOptions read_prediction(const FlagValues& values);

}  // namespace paceline
