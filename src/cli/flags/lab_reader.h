// Emulated hosts, from the flags of a launcher.
#pragma once

#include "cli/flags/command_line.h"
#include "launch/lab/lab_options.h"
#include "paceline/cluster.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Returns the hosts for the tasks of the cluster, if they are asked for. Throws kUsage that names
/// the flag and what is allowed.
LabOptions read_lab(const FlagValues& values, const Cluster& cluster);

/// Tells the prediction of a job where its tasks run, or which hosts are there for tasks whose
/// number is open.
void set_places(const LabOptions& lab, PredictionOptions& prediction);

}  // namespace paceline
