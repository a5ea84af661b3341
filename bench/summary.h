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

/// Quartiles by linear interpolation between the two neighbours in order (Hyndman & Fan, The
/// American Statistician 50(4), 1996, type 7). Throws kInvalidArgument when there are no values.
Summary summarize(std::span<const double> values);

/// values[i] ÷ others[i]: what was measured back to back is compared in pairs. Throws
/// kInvalidArgument when they are not equally many.
std::vector<double> paired_ratios(std::span<const double> values, std::span<const double> others);

}  // namespace paceline::bench
