#include "predict/host_cache.h"

#include <algorithm>
#include <array>
#include <vector>

#include "predict/core_trip.h"
#include "predict/hosts_file.h"
#include "predict/roof.h"

namespace paceline {
namespace {

struct HostRate {
  const char* name;
  double PredictedHost::*rate;
};
constexpr std::array<HostRate, 17> kRates = {
    {{"flops_per_s", &PredictedHost::flops_per_s},
     {"bytes_per_s", &PredictedHost::bytes_per_s},
     {"thread_bytes_per_s", &PredictedHost::thread_bytes_per_s},
     {"rule_bytes_per_s", &PredictedHost::rule_bytes_per_s},
     {"thread_rule_bytes_per_s", &PredictedHost::thread_rule_bytes_per_s},
     {"cached_rule_bytes_per_s", &PredictedHost::cached_rule_bytes_per_s},
     {"tcp_send_bytes_per_s", &PredictedHost::tcp_send_bytes_per_s},
     {"tcp_receive_bytes_per_s", &PredictedHost::tcp_receive_bytes_per_s},
     {"core_tcp_send_bytes_per_s", &PredictedHost::core_tcp_send_bytes_per_s},
     {"core_tcp_receive_bytes_per_s", &PredictedHost::core_tcp_receive_bytes_per_s},
     {"cipher_bytes_per_s", &PredictedHost::cipher_bytes_per_s},
     {"tcp_message_s", &PredictedHost::tcp_message_s},
     {"tcp_trip_s", &PredictedHost::tcp_trip_s},
     {"shm_message_s", &PredictedHost::shm_message_s},
     {"shm_trip_s", &PredictedHost::shm_trip_s},
     {"core_trip_s", &PredictedHost::core_trip_s},
     {"others_share", &PredictedHost::others_share}}};

bool is_number_in(const nlohmann::json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number() && found->get<double>() >= 0;
}

// True if the entry is well formed and of the last hour. Clocks may be set back, so entries that
// seem to come from the future are dropped.
bool is_kept(const nlohmann::json& entry, std::int64_t now) {
  if (!entry.is_object() || !is_number_in(entry, "at") || !is_number_in(entry, "cores"))
    return false;
  const auto at = entry["at"].get<double>();
  return at <= double(now) && at > double(now - HostCache::kKept) &&
         std::ranges::all_of(kRates,
                             [&](const HostRate& it) { return is_number_in(entry, it.name); });
}

PredictedHost host_of(const nlohmann::json& entry) {
  PredictedHost host{.name = "this machine", .cores = entry["cores"].get<double>()};
  for (const HostRate& it : kRates) host.*it.rate = entry[it.name].get<double>();
  return host;
}

nlohmann::json entry_of(const HostCache::Noted& noted) {
  nlohmann::json entry = {{"at", noted.at}, {"cores", noted.host.cores}};
  for (const HostRate& it : kRates) entry[it.name] = noted.host.*it.rate;
  return entry;
}

std::vector<HostCache::Noted> kept_of(const nlohmann::json& entries, std::int64_t now) {
  std::vector<HostCache::Noted> kept;
  for (const nlohmann::json& entry : entries) {
    if (is_kept(entry, now)) kept.push_back({host_of(entry), entry["at"].get<std::int64_t>()});
  }
  return kept;
}

}  // namespace

PredictedHost usual_host(std::span<const PredictedHost> measured) {
  PredictedHost host = measured.back();
  for (const HostRate& it : kRates) {
    std::vector<double> rates;
    for (const PredictedHost& each : measured) {
      if (is_same_placement(each.core_trip_s, measured.back().core_trip_s))
        rates.push_back(each.*it.rate);
    }
    const auto middle = rates.begin() + std::ptrdiff_t(rates.size() / 2);
    std::ranges::nth_element(rates, middle);
    host.*it.rate = *middle;
  }
  return host;
}

std::string HostCache::note(const Noted& noted) const {
  double beside = 0;
  file_.change([&](const nlohmann::json& entries) {
    nlohmann::json kept = nlohmann::json::array();
    for (const Noted& each : kept_of(entries, noted.at)) {
      if (is_beside_others(each.host.others_share)) {
        beside = each.host.others_share;
      } else {
        kept.push_back(entry_of(each));
      }
    }
    kept.push_back(entry_of(noted));
    return kept;
  });
  if (beside == 0 || is_beside_others(noted.host.others_share)) return "";
  return "Discards what this machine was seen to do " + beside_others(beside) +
         ": it was measured anew";
}

SeenHost HostCache::usual(std::int64_t now, double core_trip_s,
                          const std::function<PredictedHost()>& measure) const {
  // The undisturbed measurements that were made with the cores in the same places as now.
  std::vector<PredictedHost> hosts;
  std::int64_t newest = 0;
  for (const Noted& noted : kept_of(file_.read(), now)) {
    if (is_beside_others(noted.host.others_share)) continue;
    if (!is_same_placement(noted.host.core_trip_s, core_trip_s)) continue;
    hosts.push_back(noted.host);
    newest = std::max(newest, noted.at);
  }
  if (newest > now - kFresh) return {usual_host(hosts)};
  const PredictedHost measured = measure();
  const std::string discarded = note({measured, now});
  if (!is_beside_others(measured.others_share)) hosts.push_back(measured);
  return {hosts.empty() ? measured : usual_host(hosts), discarded};
}

std::optional<HostCache::Noted> HostCache::newest(std::int64_t now) const {
  const std::vector<Noted> kept = kept_of(file_.read(), now);
  const auto found = std::ranges::max_element(kept, {}, &Noted::at);
  return found == kept.end() ? std::nullopt : std::optional(*found);
}

}  // namespace paceline
