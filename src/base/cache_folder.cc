#include "base/cache_folder.h"

#include <cstdlib>

namespace paceline {

std::string cache_folder() {
  // The specification tells programs to ignore a path that is not absolute.
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/paceline";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.cache/paceline";
  }
  return "";
}

}  // namespace paceline
