// The flags of `paceline train MODEL`, for whoever starts the same training.
#pragma once

#include <string>

#include "cluster/command_line.h"
#include "models/model.h"

namespace paceline {

CommandLine train_flags(const models::Model& model);
/// What --set may change: a part of its --help.
std::string hyper_parameters_text(const models::Model& model);
/// Those that are the model's business. Throws kUsage.
models::ModelOptions read_model_options(const FlagValues& values);

}  // namespace paceline
