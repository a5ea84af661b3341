// The flags of a process for which a launcher has chosen a place among others.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// Returns the flags --cluster, --task and --placed of the process with this rank. `addresses` has
/// the addresses of all processes by rank, of which the first `ps` are parameter servers. Errors
/// and logs say that the flags come from `launcher` and the environment variables in the text
/// `seen`.
std::vector<GivenFlag> placed_flags(const std::string& launcher, const std::string& seen, int rank,
                                    const std::vector<std::string>& addresses, int ps);

}  // namespace paceline
