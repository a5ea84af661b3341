// Reads the emulated hosts from the flags of a launcher.
#pragma once

#include "cli/flags/command_line.h"
#include "launch/lab/lab_options.h"
#include "paceline/cluster.h"
#include "predict/prediction_options.h"

namespace paceline {

/// Returns the hosts for the tasks of the cluster; none if the flags ask for none. Throws kUsage
/// that names the flag and the allowed values.
LabOptions read_lab(const FlagValues& values, const Cluster& cluster);

/// Tells the prediction on which hosts the tasks of the job run; if the number of tasks is open,
/// only how many hosts there are.
void set_places(const LabOptions& lab, PredictionOptions& prediction);

}  // namespace paceline
