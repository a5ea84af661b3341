// The flags of predictions.
#pragma once

#include "cli/flags/command_line.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Leaves the numbers of parameter servers and workers open if flags concern these tasks without
/// giving their numbers, and if a prediction is asked for or --strategy auto chooses.
void leave_counts_open(FlagValues& values);

/// Reads the options of a prediction. The links of emulated hosts (--lab-hosts) have the rate that
/// the flags give them. Throws kUsage.
PredictionOptions read_prediction(const FlagValues& values);

}  // namespace paceline
