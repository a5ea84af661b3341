// Predicts the speed of a session of several tasks before its first step, for the session's report.
#pragma once

#include "paceline/run_options.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Makes an observer on the chief that predicts the job's speed, prints the speed and whether
/// another shape would be faster, and adds both to the report.
MakeObserver say_prediction(const PredictionOptions& options);

}  // namespace paceline
