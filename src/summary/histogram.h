// How many values of a tensor lie where.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

/// Buckets of equal width from the least to the greatest value. What is not finite is left out.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits;  // upper ends, ascending
  std::vector<double> counts;  // as many

  static constexpr int kBuckets = 30;
  static Histogram of(std::span<const float> values);
  bool operator==(const Histogram&) const = default;
};

}  // namespace paceline
