// Runs in which workers join a job one after another.
#pragma once

#include <vector>

#include "bench/figures.h"
#include "evidence/report_rows.h"

namespace paceline::bench {

/// Starts a parameter server and the row's workers, each worker row.apart_s seconds after the one
/// before. The job has enough steps for all of them until the last one has trained for twice that
/// time. Returns the speed of each worker over time.
std::vector<Series> run_joining(const ReportRow& row);

/// A worker's speed, and the speed that it was allowed at the time.
struct KeptSpeed {
  double per_s = 0, allowed = 0;
};

// In both functions, allowed[i] is the speed that each worker can reach while i + 1 workers train.
/// Returns the speed of the worker that kept the smallest share of its allowed speed.
KeptSpeed least_kept(const std::vector<Series>& workers, const std::vector<double>& allowed);
/// Returns the allowed speed from the first worker's start to the end, with a point at each change.
Series allowed_over_time(const std::vector<Series>& workers, const std::vector<double>& allowed);

}  // namespace paceline::bench
