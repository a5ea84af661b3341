// Which oneDNN this process runs with.
#pragma once

#include <string>

namespace paceline {

/// "2.6.3".
std::string onednn_version();

}  // namespace paceline
