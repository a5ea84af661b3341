// The time of an all-reduce, by engine, number of members and size.
#pragma once

#include "bench/recorder.h"

namespace paceline::bench {

/// The case `collectives`. Each figure is the time from the moment that all members have opened a
/// reduction until the first one has all sums: no step is made and nothing is committed.
void measure_collectives(Recorder& recorder);

}  // namespace paceline::bench
