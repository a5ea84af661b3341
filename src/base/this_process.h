// The name of this process in messages.
#pragma once

#include <string>

namespace paceline {

/// "pid 4711 on host b"
std::string this_process();

}  // namespace paceline
