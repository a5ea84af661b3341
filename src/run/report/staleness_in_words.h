// Says of runs that learned badly that their workers computed with old values, and what helps.
#pragma once

#include <string>

#include "run/report/report.h"

namespace paceline {

/// "Its workers computed with values that were 3.2 updates of others old on average: …" and what to
/// do. Empty when the staleness of the run's contributions, the mean over its workers, is below 1
/// update or not known.
std::string high_staleness(const Report& run);

/// The last line of a run whose loss ended above where it began, and whose staleness is high; else
/// empty.
std::string stale_end(const Report& run);

/// The last line of a run in which contributions came too late for their rounds and were dropped:
/// how many of each worker. Else empty.
std::string dropped_end(const Report& run);

/// The last line of a run in which contributions were left out, since they had NaN; empty: none
/// was.
std::string skipped_end(const Report& run);

}  // namespace paceline
