// The flags of a process that a launcher has placed among others.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// Returns --cluster, --task and --placed of the process `rank` among those at `addresses`, of
/// which the first `ps` are parameter servers. `launcher` and the variables that were `seen` say
/// where the flags come from.
std::vector<GivenFlag> placed_flags(const std::string& launcher, const std::string& seen, int rank,
                                    const std::vector<std::string>& addresses, int ps);

}  // namespace paceline
