// The speed that a session of several tasks expects, before its first step and beside what it made.
#pragma once

#include "paceline/run_options.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Makes the observer that says on the chief what is expected of the job, and whether another way
/// would be faster, and keeps it in the report.
MakeObserver expect_speed(const PredictionOptions& options);

}  // namespace paceline
