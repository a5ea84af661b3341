// The flags of `paceline train MODEL`, for whoever starts the same training.
#pragma once

#include <string>

#include "cluster/flags/command_line.h"
#include "models/model.h"

namespace paceline {

CommandLine train_flags(const models::Model& model);
/// What --set may change: a part of its --help.
std::string hyper_parameters_text(const models::Model& model);

/// What the flags say.
struct TrainJob {
  Cluster cluster;
  RunOptions run;
  models::ModelOptions options;
};
/// Of `line`, which is train_flags or a part of it. Throws kUsage on whatever the training would
/// refuse before it starts a task.
TrainJob read_train_job(const models::Model& model, const CommandLine& line,
                        const FlagValues& values);

}  // namespace paceline
