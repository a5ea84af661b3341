// The plug-in with the calls of MPI, loaded when it is asked for.
#pragma once

#include "params/collective/mpi_calls.h"

namespace paceline {

/// Loads libpaceline_mpi.so, once and for the life of the process: from the folder of the program,
/// from ../lib/paceline beside that, or from where the system looks for libraries. Throws
/// kFailedPrecondition that says what to install when there is none.
const MpiCalls& mpi_calls();
/// True when it can be loaded.
bool has_mpi_calls();
/// Throws kUnavailable with the text of a call's failure, unless that is null.
void check_mpi(const char* failure, const char* what);

}  // namespace paceline
