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

/// Returns one flag for each setting that has a flag of its own.
std::vector<Flag> own_flags(const std::vector<AnySetting>& settings);
/// `line` with the settings' flags and --set before the flags that it has. The settings "steps" and
/// "seconds" take the place of the flags of that name. Throws kInvalidArgument when another setting
/// would hide a flag.
CommandLine with_settings(CommandLine line, const std::vector<AnySetting>& settings);
/// The lines of --help that list what --set changes. Empty when there is nothing.
std::string settings_text(const std::vector<AnySetting>& settings);

/// The settings with the values of the command line. Throws kUsage that names the flag.
Settings read_settings(const std::vector<AnySetting>& settings, const FlagValues& values);
/// ProgramRun::flags: the flags that were given, and every setting.
std::vector<std::pair<std::string, std::string>> flags_and_settings(const FlagValues& values,
                                                                    const Settings& settings);

}  // namespace paceline
