// The flags of `paceline train MODEL`, which other commands that train also use.
#pragma once

#include <string>

#include "cli/flags/command_line.h"
#include "cli/observer_options.h"
#include "launch/lab/lab_options.h"
#include "models/model.h"

namespace paceline {

CommandLine train_flags(const models::Model& model);
/// Returns the model that a user named. Throws kUsage if there is no such model; if the name is
/// that of a user's program, the message says to give `flag` to that program's own command.
const models::Model& named_model(const std::string& name, const std::string& flag = {});

/// A training, as its flags describe it.
struct TrainJob {
  Cluster cluster;
  RunOptions run;
  ObserverOptions observers;
  Settings settings;
  LabOptions lab = {};
};
/// Reads the values of `line`, which is train_flags or a part of it. Throws kUsage for everything
/// that the training would refuse before it starts a task.
TrainJob read_train_job(const models::Model& model, const CommandLine& line,
                        const FlagValues& values);

}  // namespace paceline
