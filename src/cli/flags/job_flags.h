// Reads the flags of a job from all sources that can give them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/flags/launch_environment.h"

namespace paceline {

/// Reads flags from these sources; a later source only adds flags that the earlier ones do not
/// give.
/// - The command line.
/// - The file of --config. A given flag also displaces flags of the file that say the same in other
///   words (`displaced`).
/// - The environment, as far as --launcher allows it; null: none. The cluster and the task come
///   from $PACELINE_TASK, which `paceline launch` sets, or from the variables of other launchers.
///
/// `paceline predict` sets $PACELINE_PREDICT, which makes the command predict the job. Numbers of
/// tasks that a prediction should try are left open. Returns nothing if --help was given. Throws
/// kUsage.
std::optional<FlagValues> parse_job(const CommandLine& line,
                                    const std::vector<std::string>& arguments,
                                    const Environment& environment);

}  // namespace paceline
