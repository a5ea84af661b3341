// The flags of a program's own settings, and their values on a command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/flags/command_line.h"
#include "paceline/program.h"

namespace paceline {

/// The heading of these flags in --help.
extern const char* const kProgramFlags;

/// Returns a flag for each setting that has its own flag.
std::vector<Flag> own_flags(const std::vector<AnySetting>& settings);
/// Returns `line` with the settings' flags and --set in front of its own flags. The settings
/// "steps" and "seconds" replace the flags of the same names. Throws kInvalidArgument if another
/// setting would hide a flag.
CommandLine with_settings(CommandLine line, const std::vector<AnySetting>& settings);
/// Returns the lines of --help that list what --set can change; empty if there are no settings.
std::string settings_text(const std::vector<AnySetting>& settings);

/// Returns the settings with their values from the command line. Throws kUsage that names the flag.
Settings read_settings(const std::vector<AnySetting>& settings, const FlagValues& values);
/// Returns ProgramRun::flags: the flags that were given, and all settings.
std::vector<std::pair<std::string, std::string>> flags_and_settings(const FlagValues& values,
                                                                    const Settings& settings);

}  // namespace paceline
