// The position of a task in its data.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace paceline {

/// Numbers by which a program finds its place in the data when it resumes. They are saved with each
/// checkpoint, by name.
struct TaskPosition {
  std::map<std::string, std::int64_t> numbers;  // "epoch", "batch"
  std::map<std::string, double> sums;           // "cost"; every bit is kept, except of a NaN
  /// True when there are no numbers.
  bool empty() const { return numbers.empty() && sums.empty(); }
  bool operator==(const TaskPosition&) const = default;
};

}  // namespace paceline
