// This machine as it was lately measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "predict/cache_file.h"
#include "predict/forecast.h"

namespace paceline {

/// The last of these measurements of one host, with the median of each rate among those of its own
/// placement of the cores (predict/core_trip.h): the rate of one moment says little about the next
/// seconds. At least one is given.
ForecastHost usual_host(std::span<const ForecastHost> measured);

/// The last measurements of this machine: what ran beside one of them does not decide.
class HostCache {
 public:
  static constexpr std::int64_t kFresh = 600, kKept = 3600;  // seconds

  /// Nothing is kept when the path is empty.
  explicit HostCache(std::string path) : file_(std::move(path), "measured") {}

  /// Returns the usual host of the measurements that were kept in the last hour, after another one
  /// if none with the cores placed as they are now is of the last ten minutes. `now` is in seconds
  /// since the epoch.
  ForecastHost usual(std::int64_t now, double core_trip_s,
                     const std::function<ForecastHost()>& measure) const;
  /// Measures it if usual() would, unless nothing can be kept.
  void refresh(std::int64_t now, double core_trip_s,
               const std::function<ForecastHost()>& measure) const {
    if (file_.keeps()) usual(now, core_trip_s, measure);
  }

 private:
  const CacheFile file_;
};

}  // namespace paceline
