// The numbers that all event files of a run hold.
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

/// The numbers of one task, in the order of steps, by tag.
struct TaskSummaries {
  std::string task;  // the folder's name: "worker:0"
  std::map<std::string, std::vector<SummaryPoint>> numbers;
};

/// Returns the summaries of every task, by name. `folder` is an --out folder, its summaries/, or
/// the folder of one task. Where a later file begins, the numbers that earlier files have for later
/// steps are left out. Throws kNotFound when there are no event files there, kDataLoss when one is
/// damaged.
std::vector<TaskSummaries> read_summaries(const std::string& folder);

}  // namespace paceline
