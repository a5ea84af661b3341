// Workers that join a job one after the other.
#pragma once

#include "bench/report_run.h"

namespace paceline::bench {

/// Starts a parameter server and the workers of the row, each so long after the one before. The job
/// has steps for all of them until the last one has trained for twice as long as lies between two
/// starts.
ReportSpeed run_joining(const ReportRow& row);

}  // namespace paceline::bench
