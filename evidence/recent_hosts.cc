#include "evidence/recent_hosts.h"

#include <algorithm>

#include "predict/core_trip.h"
#include "predict/host_cache.h"

namespace paceline::bench {
namespace {

constexpr std::size_t kLeast = 5, kMost = 9;

}  // namespace

PredictedHost RecentHosts::usual() {
  do {
    hosts_.push_back(measure_());
  } while (drop_all_but_latest(hosts_.back().core_trip_s) < kLeast);
  return usual_host(hosts_);
}

// Drops the oldest measurement in this placement of the cores if there are more than kMost. Returns
// the number of those that remain.
std::size_t RecentHosts::drop_all_but_latest(double core_trip_s) {
  const auto is_alike = [&](const PredictedHost& host) {
    return is_same_placement(host.core_trip_s, core_trip_s);
  };
  const auto alike = std::size_t(std::ranges::count_if(hosts_, is_alike));
  if (alike <= kMost) return alike;
  hosts_.erase(std::ranges::find_if(hosts_, is_alike));
  return kMost;
}

}  // namespace paceline::bench
