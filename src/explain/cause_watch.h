// Says what holds a run back while it runs, whenever that changes.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "explain/finding.h"
#include "run/report/report.h"

namespace paceline {

/// Gets the report of the run from time to time, and explains its last seconds.
class CauseWatch {
 public:
  /// `seconds` since the run began, which never go back. Returns a line for the user once a cause
  /// has stayed for five seconds that was not the last one that was told, and at once when a task
  /// stood still; else nothing. That nothing holds the run back any more is told, too, once
  /// something had.
  std::string look(const Report& run, double seconds);

 private:
  std::deque<std::pair<double, Report>> reports_;  // of the last seconds
  Finding told_, seen_;
  double seen_since_ = 0;
};

}  // namespace paceline
