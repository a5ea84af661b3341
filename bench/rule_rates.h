// The update rules beside what memory allows them.
#pragma once

#include "bench/recorder.h"

namespace paceline::bench {

/// The case `rules`: each rule over a variable that no cache holds, ns per element, beside its
/// bytes at the rate of a plain update of memory, on one thread and on all.
void measure_rules(Recorder& recorder);

}  // namespace paceline::bench
