// What a task says of itself while it runs, as it travels to whoever shows the job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "run/report/report.h"

namespace paceline {

struct TaskProgress {
  double at = 0;                        // seconds of the task's own clock, at which it was so
  Report report;                        // as if the task ended now, with one entry in `tasks`
  std::vector<std::string> lines = {};  // the last that it has printed
  /// The last numbers that its program gave, by tag (Session::summarise).
  std::vector<std::pair<std::string, double>> numbers = {};

  std::string to_json() const;
  /// Throws kDataLoss.
  static TaskProgress from_json(const std::string& text);

  bool operator==(const TaskProgress&) const = default;
};

}  // namespace paceline
