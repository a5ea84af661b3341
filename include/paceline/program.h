// The main function of a program that trains.
#pragma once

#include <functional>

#include <string>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "paceline/settings.h"

namespace paceline {

/// The main function of a program that trains. It reads the flags of the cluster and of the run
/// from `argv` (--help lists them), from a --config file and from $TF_CONFIG. Then it launches the
/// tasks on this machine, serves as a ps, or calls `work` as the only process or as a worker,
/// whichever the flags say. It prints errors and returns the exit status: 0 done, 1 failed,
/// 2 wrong usage, 130 interrupted.
int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work);

/// The description and the settings of a program.
struct ProgramOptions {
  /// The first lines of --help.
  std::string about = "Trains, alone or as a cluster.";
  /// The hyper-parameters and the program's own flags, in the order in which --help lists them.
  std::vector<Setting> settings = {};
};

/// The same, for a program with settings of its own: they are given on the command line or in the
/// --config file, listed by --help, completed by shells (--completion) and written to the report.
/// `work` gets their values. A value that is not allowed is refused before any task starts.
int run_program(
    int argc, char** argv, const ProgramOptions& options,
    const std::function<void(const Cluster&, const RunOptions&, const Settings&)>& work);

}  // namespace paceline
