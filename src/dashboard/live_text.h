// Writes a live run as JSON for its page and as metrics for Prometheus (docs/dashboard.md).
#pragma once

#include <string>

#include "dashboard/live_run.h"

namespace paceline {

std::string state_json(const LiveRun& run, TimePoint now);
/// Returns the state.json of a run that has ended, from its report.
std::string state_json(const Report& report);
/// Returns the run's metrics in Prometheus' text format, version 0.0.4.
std::string metrics_text(const LiveRun& run, TimePoint now);

}  // namespace paceline
