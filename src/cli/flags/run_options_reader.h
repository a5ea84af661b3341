// Reads the options of a run from its flags.
#pragma once

#include "cli/flags/command_line.h"
#include "cli/observer_options.h"
#include "paceline/run_options.h"

namespace paceline {

/// Returns the options with all defaults, except the observers. Throws kUsage that names the flag
/// and the allowed values.
RunOptions read_run_options(const FlagValues& values);
/// Returns the options of the run's observers. Throws kUsage, too.
ObserverOptions read_observer_options(const FlagValues& values);

}  // namespace paceline
