#include "params/collective/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <string>

#include "base/plugin.h"
#include "paceline/error.h"

namespace paceline {
namespace {

const char* const kPlugin = "libpaceline_mpi.so";

// Loads the plug-in with global symbols: MPI opens plug-ins of its own, which look for MPI's
// symbols among the global ones.
const MpiCalls* find_calls(std::string& why) {
  const auto function = reinterpret_cast<MpiPluginFunction>(
      plugin_function(kPlugin, kMpiPluginFunction, RTLD_NOW | RTLD_GLOBAL, why));
  return function == nullptr ? nullptr : function();
}

}  // namespace

const MpiCalls& mpi_calls() {
  std::string why;
  if (const MpiCalls* const calls = find_calls(why)) return *calls;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("MPI cannot be used: its plug-in was not found ({}). Install Debian's "
                          "libopenmpi-dev and openmpi-bin (scripts/install_dependencies --mpi) and "
                          "build Paceline again, which then makes {}",
                          why, kPlugin));
}

bool has_mpi_calls() {
  std::string why;
  return find_calls(why) != nullptr;
}

void check_mpi(const char* failure, const char* what) {
  if (failure == nullptr) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("[mpi] {}: {}", what, failure));
}

std::optional<int> number_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  int number = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, status] = std::from_chars(text, text + std::strlen(text), number);
  return status == std::errc() && *end == '\0' ? std::optional(number) : std::nullopt;
}

std::optional<int> rank_by_mpirun() { return number_in_environment("OMPI_COMM_WORLD_RANK"); }

}  // namespace paceline
