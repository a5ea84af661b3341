// The flags of predictions.
#pragma once

#include "cluster/flags/command_line.h"
#include "paceline/run_options.h"

namespace paceline {

/// The links of emulated hosts (--lab-hosts) are as fast as they are made. Throws kUsage.
PredictionOptions read_prediction(const FlagValues& values);

}  // namespace paceline
