// Reads the numbers in all event files of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace paceline {

struct SummaryPoint {
  std::int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  double value = 0;
  bool operator==(const SummaryPoint&) const = default;
};

/// The numbers of one task by tag, ordered by step.
struct TaskSummaries {
  std::string task;  // the folder's name: "worker:0"
  std::map<std::string, std::vector<SummaryPoint>> numbers;
};

/// Returns the summaries of every task, by name. `folder` is an --out folder, its summaries/, or
/// the folder of one task. A file of a resumed run replaces the earlier numbers from the first step
/// of that run on. Throws kNotFound if there are no event files, and kDataLoss if one is damaged.
std::vector<TaskSummaries> read_summaries(const std::string& folder);

}  // namespace paceline
