// Sums that all towers make of their numbers in the middle of a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace paceline {

/// A round of it is whole once every tower has given its numbers. They are added in the order of
/// the towers. Not for several threads at once.
class TowerSums {
 public:
  explicit TowerSums(int towers) : parts_(std::size_t(towers)) {}

  /// Gives a tower's numbers, which stay valid until the round is whole. Returns the round.
  std::int64_t give(int tower, std::span<const double> numbers) {
    parts_[std::size_t(tower)] = numbers;
    const std::int64_t round = whole_;
    if (++given_ == parts_.size()) finish();
    return round;
  }
  bool is_whole(std::int64_t round) const { return whole_ > round; }
  /// Returns the sums of the last round, until all towers have given their next numbers.
  std::span<const double> sums() const { return sums_; }

 private:
  void finish() {
    sums_.assign(parts_[0].begin(), parts_[0].end());
    for (std::size_t tower = 1; tower < parts_.size(); ++tower) {
      PACELINE_CHECK(parts_[tower].size() == sums_.size());
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += parts_[tower][i];
    }
    given_ = 0;
    ++whole_;
  }

  std::vector<std::span<const double>> parts_;  // by tower
  std::vector<double> sums_;
  std::size_t given_ = 0;
  std::int64_t whole_ = 0;  // rounds
};

}  // namespace paceline
