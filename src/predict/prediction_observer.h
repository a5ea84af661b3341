// Predicts the speed of a session of several tasks before its first step, for its own report.
#pragma once

#include "paceline/run_options.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Makes the observer that predicts the job's speed on the chief, says it and whether another way
/// would be faster, and keeps it in the report.
MakeObserver say_prediction(const PredictionOptions& options);

}  // namespace paceline
