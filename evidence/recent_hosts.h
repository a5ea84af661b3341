// This machine as measured shortly before a row of a benchmark.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "predict/prediction.h"

namespace paceline::bench {

/// The last nine measurements of a machine in each placement of its cores (predict/core_trip.h). A
/// single one would say little: rates of rules have been off by a third from those just before and
/// after.
class RecentHosts {
 public:
  explicit RecentHosts(std::function<PredictedHost()> measure) : measure_(std::move(measure)) {}

  /// Measures the machine once more, and again until its current placement has five measurements.
  /// Returns the machine with the medians of those measurements.
  PredictedHost usual();

 private:
  std::size_t drop_all_but_latest(double core_trip_s);

  const std::function<PredictedHost()> measure_;
  std::vector<PredictedHost> hosts_;
};

}  // namespace paceline::bench
