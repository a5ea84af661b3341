// This machine as it was lately measured.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "predict/cache_file.h"
#include "predict/prediction.h"

namespace paceline {

/// The last of these measurements of one host, with the median of each rate among those of its own
/// placement of the cores (predict/core_trip.h): the rate of one moment says little about the next
/// seconds. At least one is given.
PredictedHost usual_host(std::span<const PredictedHost> measured);

/// The facts of this machine, and a line for the user where what was noted before is used no
/// more.
struct SeenHost {
  PredictedHost host;
  std::string discarded = {};
};

/// The last measurements of this machine. One that was made while other programs had the cores is
/// noted as such and used no more once another one can be made: it would say what the machine can
/// do beside them.
class HostCache {
 public:
  static constexpr std::int64_t kFresh = 600, kKept = 3600;  // seconds

  /// Nothing is kept when the path is empty.
  explicit HostCache(std::string path) : file_(std::move(path), "measured") {}

  /// Returns the usual host of the measurements of the last hour beside which nothing ran, after
  /// another one if none of these with the cores placed as they are now is of the last ten minutes;
  /// if something ran beside all of them, the host that was measured now. `now` is in seconds since
  /// the epoch.
  SeenHost usual(std::int64_t now, double core_trip_s,
                 const std::function<PredictedHost()>& measure) const;
  /// A measurement and its moment, in seconds since the epoch.
  struct Noted {
    PredictedHost host;
    std::int64_t at = 0;
  };
  /// Keeps it. If nothing ran beside it, those that others disturbed are kept no more: returns
  /// SeenHost::discarded.
  std::string note(const Noted& noted) const;
  /// Returns the newest one of the last hour; nothing when there is none.
  std::optional<Noted> newest(std::int64_t now) const;

 private:
  const CacheFile file_;
};

}  // namespace paceline
