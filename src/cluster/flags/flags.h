// The flags of every program that trains: which tasks there are, which one this is, and how long
// the run goes on.
#pragma once

#include <string>
#include <vector>

#include "cluster/flags/command_line.h"

namespace paceline {

/// Groups of them, for commands that leave some out.
extern const char* const kProcessFlags;
extern const char* const kOutputFlags;

std::vector<Flag> cluster_flags();
std::vector<Flag> run_flags();
/// Whether what was given says the same as, or the opposite of, `flag`: then a file's `flag` does
/// not count.
bool displaced(const FlagValues& given, const std::string& flag);
/// The end of --help: what to type, by example; `command` is the program with its model.
std::string cluster_examples(const std::string& command);

}  // namespace paceline
