// The files in which the system tells its counters.
#pragma once

#include <string>

namespace paceline {

/// Returns the text of a file such as /proc/stat; empty if there is no such file.
std::string proc_text(const char* path);

}  // namespace paceline
