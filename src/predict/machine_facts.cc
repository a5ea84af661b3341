#include "predict/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/cores.h"
#include "cluster/cache_folder.h"
#include "cluster/report/circumstances.h"
#include "predict/roof_cache.h"

namespace paceline {
namespace {

constexpr double kLeastOfThread = 0.6;  // of the memory's rate, on every machine that was seen

std::string file_in_cache(const char* kind) {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : fmt::format("{}/{}-{}.json", folder, kind, host_name());
}

// Whatever ran beside a measurement made it lower.
ForecastHost host_with(int cores, const Roof& all, const Roof& one) {
  const auto of_thread = [&](double Roof::*rate) {
    return std::clamp(one.*rate, kLeastOfThread * (all.*rate), all.*rate);
  };
  return {.name = "this machine",
          .cores = double(cores),
          .flops_per_s = all.flops_per_s,
          .bytes_per_s = all.bytes_per_s,
          .thread_bytes_per_s = of_thread(&Roof::bytes_per_s),
          .rule_bytes_per_s = all.rule_bytes_per_s,
          .thread_rule_bytes_per_s = of_thread(&Roof::rule_bytes_per_s),
          .tcp_send_bytes_per_s = std::max(all.tcp.send, one.tcp.send),
          .tcp_receive_bytes_per_s = std::max(all.tcp.receive, one.tcp.receive)};
}

}  // namespace

ForecastHost this_host() {
  const int cores = cores_of_machine();
  const RoofCache cache(file_in_cache("roof"));
  const Roof all = cache.roof(DType::kFloat32, cores);
  return host_with(cores, all, cores > 1 ? cache.roof(DType::kFloat32, 1) : all);
}

ForecastHost measured_host() {
  const int cores = cores_of_machine();
  const Roof all = measure_roof(DType::kFloat32, cores);
  return host_with(cores, all, cores > 1 ? measure_roof(DType::kFloat32, 1) : all);
}

PaceCache this_pace_cache() { return PaceCache(file_in_cache("pace")); }

double network_gbps() {
  double most = 0;
  std::error_code ignored;
  for (const auto& card : std::filesystem::directory_iterator("/sys/class/net", ignored)) {
    std::ifstream file(card.path() / "speed");
    double megabits = 0;
    if (file >> megabits) most = std::max(most, megabits / 1000);
  }
  return most;
}

}  // namespace paceline
