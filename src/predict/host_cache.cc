#include "predict/host_cache.h"

#include <algorithm>
#include <array>
#include <vector>

#include "predict/core_trip.h"

namespace paceline {
namespace {

struct HostRate {
  const char* name;
  double ForecastHost::*rate;
};
constexpr std::array<HostRate, 11> kRates = {
    {{"flops_per_s", &ForecastHost::flops_per_s},
     {"bytes_per_s", &ForecastHost::bytes_per_s},
     {"thread_bytes_per_s", &ForecastHost::thread_bytes_per_s},
     {"rule_bytes_per_s", &ForecastHost::rule_bytes_per_s},
     {"thread_rule_bytes_per_s", &ForecastHost::thread_rule_bytes_per_s},
     {"tcp_send_bytes_per_s", &ForecastHost::tcp_send_bytes_per_s},
     {"tcp_receive_bytes_per_s", &ForecastHost::tcp_receive_bytes_per_s},
     {"core_tcp_send_bytes_per_s", &ForecastHost::core_tcp_send_bytes_per_s},
     {"core_tcp_receive_bytes_per_s", &ForecastHost::core_tcp_receive_bytes_per_s},
     {"cipher_bytes_per_s", &ForecastHost::cipher_bytes_per_s},
     {"core_trip_s", &ForecastHost::core_trip_s}}};

bool is_number_in(const nlohmann::json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number() && found->get<double>() >= 0;
}

// Clocks may be set back: what seems to come from the future is not kept.
bool is_kept(const nlohmann::json& entry, std::int64_t now) {
  if (!entry.is_object() || !is_number_in(entry, "at") || !is_number_in(entry, "cores"))
    return false;
  const auto at = entry["at"].get<double>();
  return at <= double(now) && at > double(now - HostCache::kKept) &&
         std::ranges::all_of(kRates,
                             [&](const HostRate& it) { return is_number_in(entry, it.name); });
}

ForecastHost host_of(const nlohmann::json& entry) {
  ForecastHost host{.name = "this machine", .cores = entry["cores"].get<double>()};
  for (const HostRate& it : kRates) host.*it.rate = entry[it.name].get<double>();
  return host;
}

nlohmann::json entry_of(const ForecastHost& host, std::int64_t at) {
  nlohmann::json entry = {{"at", at}, {"cores", host.cores}};
  for (const HostRate& it : kRates) entry[it.name] = host.*it.rate;
  return entry;
}

}  // namespace

ForecastHost usual_host(std::span<const ForecastHost> measured) {
  ForecastHost host = measured.back();
  for (const HostRate& it : kRates) {
    std::vector<double> rates;
    for (const ForecastHost& each : measured) {
      if (is_same_placement(each.core_trip_s, measured.back().core_trip_s))
        rates.push_back(each.*it.rate);
    }
    const auto middle = rates.begin() + std::ptrdiff_t(rates.size() / 2);
    std::ranges::nth_element(rates, middle);
    host.*it.rate = *middle;
  }
  return host;
}

ForecastHost HostCache::usual(std::int64_t now, double core_trip_s,
                              const std::function<ForecastHost()>& measure) const {
  std::vector<ForecastHost> hosts;  // with the cores placed as they are now
  std::int64_t newest = 0;
  const nlohmann::json read = file_.read();
  for (const nlohmann::json& entry : read) {
    if (!is_kept(entry, now)) continue;
    const ForecastHost host = host_of(entry);
    if (!is_same_placement(host.core_trip_s, core_trip_s)) continue;
    hosts.push_back(host);
    newest = std::max(newest, entry["at"].get<std::int64_t>());
  }
  if (newest <= now - kFresh) {
    hosts.push_back(measure());
    file_.change([&](const nlohmann::json& entries) {
      nlohmann::json kept = nlohmann::json::array();
      for (const nlohmann::json& entry : entries) {
        if (is_kept(entry, now)) kept.push_back(entry);
      }
      kept.push_back(entry_of(hosts.back(), now));
      return kept;
    });
  }
  return usual_host(hosts);
}

}  // namespace paceline
