// Paceline's own libraries that it loads on demand.
#pragma once

#include <string>

namespace paceline {

/// Loads the library `name`, once and for the life of the process: from the folder that
/// $PACELINE_PLUGINS names, from that of the program, from ../lib/paceline beside it, from where
/// packages put it, or from where the system looks for libraries. Returns its function, or null,
/// and then `why` says why not. `flags` are those of dlopen.
void* plugin_function(const std::string& name, const char* function, int flags, std::string& why);

}  // namespace paceline
