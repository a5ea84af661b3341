// This machine as recent measurements found it.
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

/// Returns the last of these measurements of one host, with each rate replaced by its median over
/// the measurements that have the same placement of the cores (predict/core_trip.h), since a rate
/// of one moment says little about the next seconds. `measured` must not be empty.
PredictedHost usual_host(std::span<const PredictedHost> measured);

/// The facts of this machine, and a line for the user if earlier measurements are no longer used.
struct SeenHost {
  PredictedHost host;
  std::string discarded = {};
};

/// The latest measurements of this machine. A measurement that was made while other programs had
/// the cores is marked (others_share), since it only shows what the machine can do beside these
/// programs. It is no longer used once there is an undisturbed measurement.
class HostCache {
 public:
  static constexpr std::int64_t kFresh = 600, kKept = 3600;  // seconds

  /// Keeps nothing if the path is empty.
  explicit HostCache(std::string path) : file_(std::move(path), "measured") {}

  /// Returns the usual host (usual_host) of the last hour's undisturbed measurements, made with the
  /// cores placed as they are now. First measures again if none of these is from the last ten
  /// minutes. If other programs disturbed all measurements, returns the host as just measured.
  /// `now` is in seconds since the epoch.
  SeenHost usual(std::int64_t now, double core_trip_s,
                 const std::function<PredictedHost()>& measure) const;
  /// A measurement and its moment, in seconds since the epoch.
  struct Noted {
    PredictedHost host;
    std::int64_t at = 0;
  };
  /// Keeps the measurement, and drops the earlier ones that other programs disturbed. Returns
  /// SeenHost::discarded if it dropped some and nothing disturbed the new measurement.
  std::string note(const Noted& noted) const;
  /// Returns the newest measurement of the last hour; nullopt if there is none.
  std::optional<Noted> newest(std::int64_t now) const;

 private:
  const CacheFile file_;
};

}  // namespace paceline
