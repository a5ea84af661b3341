#include "base/plugin.h"

#include <dlfcn.h>

#include <filesystem>

namespace paceline {

// The system opens a library only once, and counts.
void* plugin_function(const std::string& name, const char* function, int flags, std::string& why) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path folder = program.parent_path();
  for (const std::string& path :
       {(folder / name).string(), (folder / "../lib/paceline" / name).string(), name}) {
    void* const library = ::dlopen(path.c_str(), flags);
    void* const found = library == nullptr ? nullptr : ::dlsym(library, function);
    if (found != nullptr) return found;
    const char* const error = ::dlerror();
    // The reason why a file that is there cannot be loaded says more than that others are not.
    if (why.empty() || std::filesystem::exists(path)) why = error == nullptr ? path : error;
  }
  return nullptr;
}

}  // namespace paceline
