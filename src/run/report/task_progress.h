// What a task says of itself while it runs, as it travels to whoever shows the job, and what is
// known there of the task.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/report/report.h"

namespace paceline {

struct TaskProgress {
  double at = 0;                        // the task's own time of this state, in seconds
  Report report;                        // the report if it ended now; `tasks` has one entry
  std::vector<std::string> lines = {};  // the last that it has printed
  /// The last numbers that its program gave, by tag (Session::summarise).
  std::vector<std::pair<std::string, double>> numbers = {};

  std::string to_json() const;
  /// Throws kDataLoss.
  static TaskProgress from_json(const std::string& text);

  bool operator==(const TaskProgress&) const = default;
};

/// A task over the last seconds.
struct RecentTask {
  std::optional<double> steps_per_s, examples_per_s;
  std::vector<std::pair<std::string, double>> share = {};  // of the time; they sum to 1
  std::optional<double> staleness;                         // mean
  std::optional<double> sent, received;                    // bytes a second over its links
};

/// The facts of a task that the page and top know beside its report.
struct LiveTask {
  std::optional<double> heard_s, still_s;  // since it was heard of, and since its last step
  RecentTask recent = {};
  std::vector<std::string> lines = {};  // the last that it has printed
};

}  // namespace paceline
