// Predicts a model of the zoo by the flags of a command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "predict/prediction.h"
#include "tools/subcommand.h"

namespace paceline {

/// Returns false for a flag of training that has no meaning if nothing is trained.
bool is_of_predictions(const Flag& flag);

/// The flags of `paceline predict MODEL`.
CommandLine predict_line(const models::Model& model);

/// Reads the flags. Returns false for --help, after printing it. Throws kUsage.
bool can_be_predicted(const models::Model& model, const Arguments& flags);

struct PredictedModel {
  double value_bytes = 0;               // of all its variables
  std::vector<Prediction> predictions;  // the fastest first
};
/// Prints the table of `paceline predict` for the model with these flags. Returns nothing for
/// --help, after printing it. Throws kUsage.
std::optional<PredictedModel> predict_model(const models::Model& model, const Arguments& flags);

}  // namespace paceline
