// The plug-in with the calls of MPI, which is loaded at the first call.
#pragma once

#include <optional>

#include "params/collective/mpi_calls.h"

namespace paceline {

/// Returns the calls. The first call loads libpaceline_mpi.so for the life of the process: from the
/// folder of the program, from ../lib/paceline beside that folder, or from the system's library
/// folders. If none has the library, throws kFailedPrecondition with a message that says what to
/// install.
const MpiCalls& mpi_calls();
/// True when the plug-in can be loaded.
bool has_mpi_calls();
/// Returns the whole number in an environment variable; nullopt when the variable has none.
std::optional<int> number_in_environment(const char* name);
/// Returns the rank of this process; nullopt unless mpirun has started it.
std::optional<int> rank_by_mpirun();
/// Does nothing when `failure` is null. Otherwise throws kUnavailable; its message has `what`,
/// which names the call, and the text `failure`, which says why the call failed.
void check_mpi(const char* failure, const char* what);

}  // namespace paceline
