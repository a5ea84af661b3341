// The progress of a series of runs of which is known about how long each takes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace paceline::bench {

/// "3 rows, about 2 min".
std::string plan_text(const std::vector<double>& seconds);

/// Says which run is next and how much time is left. What earlier ones took beyond their expected
/// times, or less, is expected of later ones too.
class RowProgress {
 public:
  /// `seconds`: the expected time of each run.
  explicit RowProgress(std::vector<double> seconds) : seconds_(std::move(seconds)) {}

  /// "row 3 of 12, about 4 min left"; `elapsed`: the time that the rows before it took.
  std::string text(std::size_t row, std::chrono::duration<double> elapsed) const;

 private:
  const std::vector<double> seconds_;
};

}  // namespace paceline::bench
