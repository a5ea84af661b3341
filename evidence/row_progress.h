// The progress of a series of runs whose approximate times are known.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace paceline::bench {

/// Returns a text such as "3 rows, about 2 min".
std::string plan_text(const std::vector<double>& seconds);

/// Says which run is next and how much time is left. If earlier runs took more or less than their
/// expected times, later ones are expected to do so too.
class RowProgress {
 public:
  /// `seconds` are the expected times of the runs.
  explicit RowProgress(std::vector<double> seconds) : seconds_(std::move(seconds)) {}

  /// Returns a text such as "row 3 of 12, about 4 min left"; `elapsed` is the time of the rows
  /// before it.
  std::string text(std::size_t row, std::chrono::duration<double> elapsed) const;

 private:
  const std::vector<double> seconds_;
};

}  // namespace paceline::bench
