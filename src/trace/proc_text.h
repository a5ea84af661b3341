// The files in which the system tells its counters.
#pragma once

#include <string>

namespace paceline {

/// Reads a file such as /proc/stat; empty when there is none.
std::string proc_text(const char* path);

}  // namespace paceline
