// Two runs of one job beside each other: how fast, and where the time went.
#pragma once

#include <optional>
#include <string>

#include "cluster/report/report.h"

namespace paceline {

struct Comparison {
  std::string title;  // "ptb small, generated text"
  Report alone, cluster;
  /// The same two with a simulated device for each worker.
  std::optional<Report> simulated_alone, simulated_cluster;
  std::string reported;  // what somebody else measured, for the simulated line; may be empty
};

/// The table that `paceline compare` prints, ending in a newline. Throws kFailedPrecondition when a
/// run failed or was too short to be timed.
std::string comparison_text(const Comparison& comparison);

}  // namespace paceline
