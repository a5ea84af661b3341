// The table of shapes, which grows as shapes are predicted.
#pragma once

#include <functional>
#include <vector>

#include "predict/prediction.h"

namespace paceline {

/// For PredictedJob::gives_up: returns true once `seconds` seconds have passed from now.
std::function<bool()> gives_up_after(double seconds);

/// Predicts the shapes and prints a table of them, each row as soon as it is known. After `limit_s`
/// seconds prints a line that names the shapes not tried yet, and stops. Returns the predictions,
/// the fastest first. Throws kUsage, naming --time-limit, if no shape was predicted by then.
std::vector<Prediction> print_predictions(PredictedJob job, const std::vector<JobShape>& shapes,
                                          double limit_s);

}  // namespace paceline
