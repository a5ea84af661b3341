// The flags of a job, from all that can give them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/flags/command_line.h"

namespace paceline {

/// What the command line gives; what it does not give counts from the file of --config; then, of
/// the cluster and the task, from `tf_config` (the text of $TF_CONFIG; null: none). A flag also
/// keeps out those of a file that say the same in other words (`displaced`). Nothing when --help
/// was asked for. Throws kUsage.
std::optional<FlagValues> parse_job(const CommandLine& line,
                                    const std::vector<std::string>& arguments,
                                    const char* tf_config);

}  // namespace paceline
