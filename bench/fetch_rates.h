// The time that fetching a small variable adds to a step, beside the barest loops that move as
// much.
#pragma once

#include "bench/recorder.h"

namespace paceline::bench {

/// The case `fetch`: added µs of the workload's three shapes, over shared memory beside re-reading
/// memory that another process writes anew meanwhile, and over tcp beside a bare socket loop of the
/// same bytes, each in turn; and with a value that does not change. Workers compute on one thread.
void measure_fetch(Recorder& recorder);

}  // namespace paceline::bench
