// The times of all-reduces by MPI.
#pragma once

#include "bench/recorder.h"

namespace paceline::bench {

/// Measures each size in processes that mpirun starts. Notes why not, where it cannot.
void measure_mpi(Recorder& recorder);
/// The part of each of these processes. Only the first one's figures are of use.
void measure_as_mpi_rank(Recorder& recorder);

}  // namespace paceline::bench
