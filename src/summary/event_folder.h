// What all event files of a run say.
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

/// Of every task, by name. `folder` is an --out folder, its summaries/, or that of one task. Where
/// a later file begins, what earlier ones say of later steps is left out. Throws kNotFound when
/// there are no event files there, kDataLoss when one is damaged.
std::vector<TaskSummaries> read_summaries(const std::string& folder);

}  // namespace paceline
