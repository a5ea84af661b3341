// Sentences about the contributions of a run: that workers computed with old values, and what
// helps; and that contributions were dropped or left out.
#pragma once

#include <string>

#include "run/report/report.h"

namespace paceline {

/// Returns "Its workers computed with values that were 3.2 updates of others old on average: …" and
/// what to do. Empty if the mean staleness over the run's workers is below 1 update, or not known.
std::string high_staleness(const Report& run);

/// Returns the last line of a run whose loss ended above where it began, and whose staleness is
/// high; else empty.
std::string stale_end(const Report& run);

/// Returns the last line of a run in which contributions arrived after their rounds and were
/// dropped: how many of each worker. Else empty.
std::string dropped_end(const Report& run);

/// Returns the last line of a run in which contributions with NaN or infinity were left out: how
/// many of each worker. Empty if there were none.
std::string skipped_end(const Report& run);

}  // namespace paceline
