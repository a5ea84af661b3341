// Paceline's own libraries that it loads on demand.
#pragma once

#include <string>

namespace paceline {

/// Loads the library `name` once, for the life of the process. Looks for it in the folder that
/// $PACELINE_PLUGINS names, in lib/paceline beside the library that contains this code (a Python
/// module), in the program's folder, in ../lib/paceline beside that folder, in lib/paceline of
/// /usr/local and of /usr, and where the system looks for libraries. Returns its function
/// `function`; or null, with the reason in `why`. `flags` are those of dlopen.
void* plugin_function(const std::string& name, const char* function, int flags, std::string& why);

}  // namespace paceline
