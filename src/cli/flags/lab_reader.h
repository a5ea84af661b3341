// Reads the emulated hosts from the flags of a launcher.
#pragma once

#include "cli/flags/command_line.h"
#include "launch/lab/lab_options.h"
#include "paceline/cluster.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Returns the hosts for the tasks of the cluster, if the flags ask for them. Throws kUsage that
/// names the flag and the allowed values.
LabOptions read_lab(const FlagValues& values, const Cluster& cluster);

/// Tells the prediction where the tasks of the job run; if their number is open, which hosts there
/// are for them.
void set_places(const LabOptions& lab, PredictionOptions& prediction);

}  // namespace paceline
