// The report of a run over the time between two moments.
#pragma once

#include "run/report/report.h"

namespace paceline {

/// Returns the report of the time between two reports of one run, for the tasks that are in both.
/// Numbers that are no sums or averages over time, such as quantiles, are those of the later
/// report.
Report report_between(const Report& before, const Report& now);

}  // namespace paceline
