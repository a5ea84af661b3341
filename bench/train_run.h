// One run of `paceline train` as a process of its own.
#pragma once

#include <string>
#include <vector>

#include "cluster/report.h"

namespace paceline::bench {

struct TrainRun {
  Report report;
  /// Of the largest process, or of this one as it is now when that is larger.
  double peak_bytes = 0;
};

/// Runs this program with `arguments` ("train", the model, its flags) and a --report; its output is
/// dropped. Throws kFailedPrecondition with what the run says went wrong.
TrainRun run_train(std::vector<std::string> arguments);

/// Of a section of the report. Throws kFailedPrecondition when it is not there.
double value_of(const Report& report, const std::string& section, const std::string& key);

/// Steps per second of all workers; throws kFailedPrecondition when one made no timed step.
double total_steps_per_s(const Report& report);

}  // namespace paceline::bench
