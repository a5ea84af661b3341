// The flags of every program that trains: those of its cluster and those of its run.
#pragma once

#include <string>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// The headings of two groups of flags, for commands that leave the group out.
extern const char* const kProcessFlags;
extern const char* const kOutputFlags;

std::vector<Flag> cluster_flags();
std::vector<Flag> run_flags();
/// True when a given flag means the same as `flag`, or the opposite. A file's `flag` then does not
/// count.
bool displaced(const FlagValues& given, const std::string& flag);
/// The examples at the end of --help. `command` is the program with its model.
std::string cluster_examples(const std::string& command);

}  // namespace paceline
