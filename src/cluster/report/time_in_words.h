// Where the time of a worker went, in a sentence.
#pragma once

#include <string>

#include "cluster/report/report.h"

namespace paceline {

/// "Most of the time (71%) went to waiting for values from the ps; kernels and rules alone would
/// allow 52.1 steps/s." Empty when no step was timed. Kernels that take nearly all of the time
/// allow no more than there is, which is then not said.
std::string time_in_words(const TaskReport& worker);

}  // namespace paceline
