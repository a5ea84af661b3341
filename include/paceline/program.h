// The main function of a program that trains.
#pragma once

#include <functional>

#include "paceline/cluster.h"
#include "paceline/run_options.h"

namespace paceline {

/// The whole main function of a program that trains: reads the cluster and run flags of `argv`
/// (--help lists them), those of a --config file and $TF_CONFIG, and then, by them, launches the
/// tasks on this machine, serves as a ps, or calls `work` as the only process or as a worker.
/// Reports errors and returns the exit status: 0, 1 failed, 2 usage, 130 interrupted.
int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work);

}  // namespace paceline
