#include "base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace paceline {

namespace {

// Returns the folder of the library that contains this code; empty if only a path from the current
// folder names it, as of a program that was found in $PATH: nothing is loaded from where the user
// happens to be.
std::filesystem::path folder_of_code() {
  ::Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&plugin_function), &here) == 0) return {};
  const std::filesystem::path file = here.dli_fname;
  return file.is_absolute() ? file.parent_path() : std::filesystem::path();
}

}  // namespace

// The system loads a library once, however often dlopen is called for it.
void* plugin_function(const std::string& name, const char* function, int flags, std::string& why) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path folder = program.parent_path();
  std::vector<std::string> paths = {folder / name, folder / "../lib/paceline" / name,
                                    "/usr/local/lib/paceline/" + name, "/usr/lib/paceline/" + name,
                                    name};
  // A Python module takes the library that came with it, and not that of an installed package.
  if (const std::filesystem::path code = folder_of_code(); !code.empty() && code != folder) {
    paths.insert(paths.begin(), code / "lib/paceline" / name);
  }
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
