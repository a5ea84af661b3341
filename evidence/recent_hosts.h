// This machine as it was measured shortly before a row of a benchmark.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "predict/prediction.h"

namespace paceline::bench {

/// The last nine measurements of a machine in each placement of its cores (predict/core_trip.h).
/// One of them would say little: the rate of rules was seen to be off by a third from those just
/// before and after it.
class RecentHosts {
 public:
  explicit RecentHosts(std::function<PredictedHost()> measure) : measure_(std::move(measure)) {}

  /// Measures the machine once more, and until its placement of this moment was measured five
  /// times. Returns it with the medians of those measurements.
  PredictedHost usual();

 private:
  std::size_t drop_all_but_latest(double core_trip_s);

  const std::function<PredictedHost()> measure_;
  std::vector<PredictedHost> hosts_;
};

}  // namespace paceline::bench
