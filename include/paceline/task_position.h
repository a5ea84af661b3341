// Where a task is in its data.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace paceline {

/// What a program wants to know of itself when it goes on: saved with each checkpoint, by name.
struct TaskPosition {
  std::map<std::string, std::int64_t> numbers;  // "epoch", "batch"
  std::map<std::string, double> sums;           // so far: "cost"; every bit is kept, but of a NaN
  bool empty() const { return numbers.empty() && sums.empty(); }  ///< Nothing was told.
  bool operator==(const TaskPosition&) const = default;
};

}  // namespace paceline
