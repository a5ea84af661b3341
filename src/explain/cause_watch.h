// Says what holds a run back while it runs, whenever the cause changes.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "explain/finding.h"
#include "run/report/report.h"

namespace paceline {

/// Gets reports of the run from time to time, and explains the last seconds.
class CauseWatch {
 public:
  /// `seconds` is the time since the run began, and never goes back. Returns a line for the user
  /// when the cause has changed and the new one has held for five seconds; or at once when a task
  /// has stood still; else an empty text. Once a cause was told, its end is told, too.
  std::string look(const Report& run, double seconds);

 private:
  std::deque<std::pair<double, Report>> reports_;  // of the last seconds
  Finding told_, seen_;
  double seen_since_ = 0;
};

}  // namespace paceline
