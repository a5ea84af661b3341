// Paths that flags and settings name.
#pragma once

#include <string>

#include "cli/flags/command_line.h"

namespace paceline {

/// True for a flag or setting whose values are paths: FILE, DIR or PATH, as --help shows it.
bool names_path(const std::string& placeholder);
/// Returns the path with the user's folder in place of a leading ~, which no shell replaces in
/// "--out=~/run" or in files of flags. Throws kUsage, naming the flag, for paths that only a shell
/// could complete: "~other/run", "$HOME/run".
std::string expanded_path(const std::string& flag, const std::string& path);

}  // namespace paceline
