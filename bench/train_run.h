// One run of `paceline train` as a process of its own.
#pragma once

#include <string>
#include <vector>

#include "cluster/report/report.h"

namespace paceline::bench {

/// Runs this program with `arguments` ("train", the model, its flags) and a --report; its output is
/// dropped. Throws kFailedPrecondition with what the run says went wrong.
Report run_train(std::vector<std::string> arguments);

/// Of a section of the report. Throws kFailedPrecondition when it is not there.
double value_of(const Report& report, const std::string& section, const std::string& key);

/// Bytes: the largest resident set of its largest task. Throws kFailedPrecondition when one could
/// not measure it.
double peak_memory(const Report& report);

/// Steps per second of all workers; throws kFailedPrecondition when one made no timed step.
double total_steps_per_s(const Report& report);

}  // namespace paceline::bench
