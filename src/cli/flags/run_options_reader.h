// The options of a run, from its flags.
#pragma once

#include "cli/flags/command_line.h"
#include "cli/observer_options.h"
#include "paceline/run_options.h"

namespace paceline {

/// The options, complete with defaults but for observers. Throws kUsage that names the flag and
/// what is allowed.
RunOptions read_run_options(const FlagValues& values);
/// Reads the options of its observers. Throws kUsage, too.
ObserverOptions read_observer_options(const FlagValues& values);

}  // namespace paceline
