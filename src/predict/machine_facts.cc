#include "predict/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/cache_folder.h"
#include "base/cores.h"
#include "base/printed.h"
#include "predict/cipher_rate.h"
#include "predict/core_trip.h"
#include "predict/hosts_file.h"
#include "predict/roof.h"
#include "predict/tcp_rates.h"
#include "run/report/circumstances.h"

namespace paceline {
namespace {

constexpr double kLeastOfThread = 0.6;  // of the memory's rate, on every machine that was seen

std::string file_in_cache(const std::string& kind) {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : fmt::format("{}/{}-{}.json", folder, kind, host_name());
}

HostCache host_cache() {
  return HostCache(file_in_cache(fmt::format("host-{}-cores", usable_cores())));
}

std::int64_t seconds_since_epoch() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

SeenHost this_host() {
  return host_cache().usual(seconds_since_epoch(), core_trip_seconds(), measured_host);
}

std::string noted_host_text() {
  const std::int64_t now = seconds_since_epoch();
  const std::optional<HostCache::Noted> noted = host_cache().newest(now);
  if (!noted) return "";
  std::string text = fmt::format(
      "{} GFLOP/s, {} GB/s, measured {} min ago", rounded(noted->host.flops_per_s * 1e-9, 3),
      rounded(noted->host.bytes_per_s * 1e-9, 3), (now - noted->at) / 60);
  if (is_beside_others(noted->host.others_share)) {
    text += " " + beside_others(noted->host.others_share);
  }
  return text;
}

PredictedHost measured_host() {
  constexpr RoofSeconds kSeconds = {.products = 0.04, .memory = 0.02};
  const int cores = usable_cores();
  RoofMeter meter(DType::kFloat32, cores);
  const Roof all = meter.measure(kSeconds);
  const double cached_rules = meter.measure_cached_rules(kSeconds.memory);
  const ThreadRates one = cores > 1 ? meter.measure_thread(kSeconds)
                                    : ThreadRates{all.bytes_per_s, all.rule_bytes_per_s};
  // Whatever ran beside a measurement made it lower.
  const auto of_thread = [](double rate, double of_all) {
    return std::clamp(rate, kLeastOfThread * of_all, of_all);
  };
  const TcpMeter tcp(meter.memory());
  const TcpRates between = tcp.measure(StreamEnds::kOnTwoCores);
  const TcpRates within = tcp.measure(StreamEnds::kOnOneCore);
  return {.name = "this machine",
          .cores = double(cores),
          .flops_per_s = all.flops_per_s,
          .bytes_per_s = all.bytes_per_s,
          .thread_bytes_per_s = of_thread(one.bytes_per_s, all.bytes_per_s),
          .rule_bytes_per_s = all.rule_bytes_per_s,
          .thread_rule_bytes_per_s = of_thread(one.rule_bytes_per_s, all.rule_bytes_per_s),
          .cached_rule_bytes_per_s = std::max(cached_rules, all.rule_bytes_per_s),
          .tcp_send_bytes_per_s = between.send,
          .tcp_receive_bytes_per_s = between.receive,
          .core_tcp_send_bytes_per_s = within.send,
          .core_tcp_receive_bytes_per_s = within.receive,
          .cipher_bytes_per_s = measured_cipher_rate(),
          .core_trip_s = core_trip_seconds(),
          .others_share = all.others_share};
}

SeenHost host_of_moment() {
  const std::array hosts = {measured_host(), measured_host(), measured_host()};
  const PredictedHost host = usual_host(hosts);
  return {host, host_cache().note({host, seconds_since_epoch()})};
}

RoofCache this_roof_cache() { return RoofCache(file_in_cache("roof")); }

PaceCache this_pace_cache() { return PaceCache(file_in_cache("pace")); }

}  // namespace paceline
