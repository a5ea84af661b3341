// The table of ways, which grows as they are predicted.
#pragma once

#include <functional>
#include <vector>

#include "predict/prediction.h"

namespace paceline {

/// For PredictedJob::gives_up: true once so many seconds have passed from now.
std::function<bool()> gives_up_after(double seconds);

/// Predicts the ways and prints a table of them, each row as soon as it is known. Ends it after
/// `limit_s` with a line that names the ways which were not tried. Returns the predictions, the
/// fastest first, at least one. Throws kUsage, naming --time-limit, when there is none by then.
std::vector<Prediction> print_predictions(PredictedJob job, const std::vector<JobShape>& shapes,
                                          double limit_s);

}  // namespace paceline
