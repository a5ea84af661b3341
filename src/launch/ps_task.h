// A ps task from start to report.
#pragma once

#include <string>

#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "params/ps/serve.h"
#include "params/shard/after_read.h"
#include "run/log.h"

namespace paceline {

/// Serves as a ps, prints what it did, and writes the report. Throws what serve throws.
void run_ps(const Cluster& cluster, const RunOptions& run, const std::string& model,
            const AfterReads& after_reads);

/// Returns the ps's answer when the chief asks for its progress (TaskProgress). `log` may be null.
std::string ps_progress(const PsSummary& summary, const Cluster& cluster, const Log* log);

}  // namespace paceline
