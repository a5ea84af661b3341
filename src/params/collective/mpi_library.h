// The plug-in with the calls of MPI, loaded when it is asked for.
#pragma once

#include <optional>

#include "params/collective/mpi_calls.h"

namespace paceline {

/// Loads libpaceline_mpi.so, once and for the life of the process: from the folder of the program,
/// from ../lib/paceline beside that, or from where the system looks for libraries. Throws
/// kFailedPrecondition that says what to install when there is none.
const MpiCalls& mpi_calls();
/// True when it can be loaded.
bool has_mpi_calls();
/// The whole number in a variable of the environment; nothing when there is none.
std::optional<int> number_in_environment(const char* name);
/// The rank of this process when mpirun has started it.
std::optional<int> rank_by_mpirun();
/// Throws kUnavailable with the text of a call's failure, unless that is null.
void check_mpi(const char* failure, const char* what);

}  // namespace paceline
