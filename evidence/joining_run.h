// Workers that join a job one after the other.
#pragma once

#include <vector>

#include "bench/figures.h"
#include "evidence/report_rows.h"

namespace paceline::bench {

/// Starts a parameter server and the workers of the row, each so long after the one before. The job
/// has steps for all of them until the last one has trained for twice as long as lies between two
/// starts. Returns the speed of each worker over time.
std::vector<Series> run_joining(const ReportRow& row);

/// The speed of a worker, and what was allowed to it meanwhile.
struct KeptSpeed {
  double per_s = 0, allowed = 0;
};

// `allowed`: the speed that each worker can have when so many train, from 1 on.
/// Returns the speed of the worker that kept least of what was allowed to it.
KeptSpeed least_kept(const std::vector<Series>& workers, const std::vector<double>& allowed);
/// Returns the allowed speed from the first worker's begin to the end: a point where it changes.
Series allowed_over_time(const std::vector<Series>& workers, const std::vector<double>& allowed);

}  // namespace paceline::bench
