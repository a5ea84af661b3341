// Runs of one model beside each other: how fast, how well, and where the time went.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/report/report.h"

namespace paceline {

struct ComparedRun {
  std::string file;  // tells runs apart that have the same tasks
  Report report;
};

struct Comparison {
  std::string title;              // "ptb small, generated text"
  std::vector<ComparedRun> runs;  // at least one; the others are compared with the first
  /// Two more, with a simulated device for each worker: one process, and the cluster.
  std::optional<Report> simulated_alone, simulated_cluster;
  std::string reported;  // a measurement of others, for the simulated line; may be empty
};

/// The table that `paceline compare` prints, ending in a newline. Throws kFailedPrecondition when
/// the runs are of different models, or one failed or was too short to be timed.
std::string comparison_text(const Comparison& comparison);

}  // namespace paceline
