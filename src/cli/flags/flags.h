// The flags of every program that trains: those of its cluster and those of its run.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// The headings of two groups of flags, for commands that leave out such a group.
extern const char* const kProcessFlags;
extern const char* const kOutputFlags;

std::vector<Flag> cluster_flags();
std::vector<Flag> run_flags();
/// True if a given flag means the same as `flag`, or the opposite, so that `flag` from a file does
/// not count.
bool displaced(const FlagValues& given, const std::string& flag);
/// Returns the examples at the end of --help. `command` is the program with its model.
std::string cluster_examples(const std::string& command);

}  // namespace paceline
