// The summary of repeated measurements: their median, and the range of their middle half.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace paceline::bench {

struct Summary {
  double median = 0;
  double low = 0, high = 0;  // first and third quartile
  std::size_t count = 0;
};

/// Computes quartiles by linear interpolation between the two neighbours in order (Hyndman & Fan,
/// The American Statistician 50(4), 1996, type 7). Throws kInvalidArgument if there are no values.
Summary summarize(std::span<const double> values);

/// Returns values[i] ÷ others[i]: measurements that were made back to back are compared in pairs.
/// Throws kInvalidArgument if their numbers differ.
std::vector<double> paired_ratios(std::span<const double> values, std::span<const double> others);

}  // namespace paceline::bench
