#include "predict/pace_cache.h"

#include <fmt/format.h>

#include <cstdlib>

namespace paceline {

std::string pace_key(const Plan& plan, DType precision) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 1099511628211u;
  };
  for (const Plan::KernelUse& use : plan.kernels) {
    const Cost cost = use.node->op().cost(*use.node);
    mix(fmt::format("{} {} {};", use.node->op().name, cost.flops, cost.bytes));
  }
  return fmt::format("{:016x} {}", hash, name_of(precision));
}

std::optional<Pace> PaceCache::find(const std::string& key, int threads) const {
  std::optional<Pace> best;
  const std::string begin = key + ' ';
  const nlohmann::json paces = file_.read();  // it must outlive what iterates over it
  if (!paces.is_object()) return std::nullopt;
  for (const auto& [name, value] : paces.items()) {
    if (!name.starts_with(begin) || !value.is_number()) continue;
    const Pace pace{std::atoi(name.c_str() + begin.size()), value.get<double>()};
    if (pace.threads <= 0 || pace.seconds <= 0) continue;
    if (pace.threads == threads) return pace;
    if (!best || pace.threads < best->threads) best = pace;
  }
  return best;
}

void PaceCache::keep(const std::string& key, const Pace& pace) const {
  constexpr std::size_t kMost = 10'000;
  file_.change([&](nlohmann::json paces) {
    const bool goes_on = paces.is_object() && paces.size() < kMost;
    if (!goes_on) paces = nlohmann::json::object();
    paces[fmt::format("{} {}", key, pace.threads)] = pace.seconds;
    return paces;
  });
}

}  // namespace paceline
