// A run's report over the time between two of its moments.
#pragma once

#include "run/report/report.h"

namespace paceline {

/// The report of the time between two reports of one run: of tasks that are in both. Numbers that
/// are no sums or averages over the time, such as quantiles, are those of the later one.
Report report_between(const Report& before, const Report& now);

}  // namespace paceline
