#include "base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace paceline {

// The system loads a library once, however often dlopen is called for it.
void* plugin_function(const std::string& name, const char* function, int flags, std::string& why) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path folder = program.parent_path();
  std::vector<std::string> paths = {folder / name, folder / "../lib/paceline" / name,
                                    "/usr/local/lib/paceline/" + name, "/usr/lib/paceline/" + name,
                                    name};
  if (const char* const plugins = std::getenv("PACELINE_PLUGINS")) {
    paths.insert(paths.begin(), std::filesystem::path(plugins) / name);
  }
  for (const std::string& path : paths) {
    void* const library = ::dlopen(path.c_str(), flags);
    void* const found = library == nullptr ? nullptr : ::dlsym(library, function);
    if (found != nullptr) return found;
    const char* const error = ::dlerror();
    // A file that exists and cannot be loaded is a better reason than a missing one.
    if (why.empty() || std::filesystem::exists(path)) why = error == nullptr ? path : error;
  }
  return nullptr;
}

}  // namespace paceline
