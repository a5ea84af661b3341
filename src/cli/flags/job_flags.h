// The flags of a job, from all sources that can give them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/flags/launch_environment.h"

namespace paceline {

/// Reads the command line, then the file of --config for flags that the command line does not give,
/// then the environment (null: none) as far as --launcher lets it count, for the cluster and the
/// task: $PACELINE_TASK, which `paceline launch` sets, or what other launchers say; and
/// $PACELINE_PREDICT, by which `paceline predict` has the command predict the job. A flag
/// also displaces flags of a file that say the same in other words (`displaced`). Numbers of tasks
/// that a prediction is to try are left open. Returns nothing when --help was asked for. Throws
/// kUsage.
std::optional<FlagValues> parse_job(const CommandLine& line,
                                    const std::vector<std::string>& arguments,
                                    const Environment& environment);

}  // namespace paceline
