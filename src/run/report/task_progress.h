// What a running task tells about itself to the process that shows the job, and what that process
// knows about the task.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/report/report.h"

namespace paceline {

struct TaskProgress {
  double at = 0;  // the time of this state by the task's own clock, in seconds
  Report report;  // the report that the task would write if it ended now; `tasks` has one entry
  std::vector<std::string> lines = {};  // the last lines that the task has printed
  /// The last numbers that the task's program gave to Session::summarise, by tag.
  std::vector<std::pair<std::string, double>> numbers = {};

  std::string to_json() const;
  /// Throws kDataLoss.
  static TaskProgress from_json(const std::string& text);

  bool operator==(const TaskProgress&) const = default;
};

/// A task over the last seconds.
struct RecentTask {
  std::optional<double> steps_per_s, examples_per_s;
  std::vector<std::pair<std::string, double>> share = {};  // shares of the time; they sum to 1
  std::optional<double> staleness;       // the mean staleness of its contributions
  std::optional<double> sent, received;  // bytes a second over its links
};

/// What the page and top know about a task beside its report.
struct LiveTask {
  // Seconds since the task was last heard of, and since its last step.
  std::optional<double> heard_s, still_s;
  RecentTask recent = {};
  std::vector<std::string> lines = {};  // the last lines that the task has printed
};

}  // namespace paceline
