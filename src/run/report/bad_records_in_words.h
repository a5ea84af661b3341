// Says how many records a run has left out.
#pragma once

#include <string>

#include "run/report/report.h"

namespace paceline {

/// Returns "1,200 bad records were left out of the input."; empty if there were none.
std::string bad_records_in_words(const TaskReport& worker);

}  // namespace paceline
