// The user's folder for files that can be made again.
#pragma once

#include <string>

namespace paceline {

/// Returns $XDG_CACHE_HOME/paceline, or ~/.cache/paceline where that is not set (XDG Base Directory
/// Specification); empty when neither is known. The folder need not be there.
std::string cache_folder();

}  // namespace paceline
