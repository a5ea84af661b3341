#include "predict/pace_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "predict/roof.h"

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

namespace {

std::string name_in_file(const std::string& key, const Pace& pace) {
  const std::string copies = pace.copies > 1 ? fmt::format("x{}", pace.copies) : "";
  return fmt::format("{} {}{}", key, pace.threads, copies);
}

// Versions that kept only a number may have measured it beside other programs, so such a number
// does not count.
std::optional<Pace> pace_of(int threads, int copies, const nlohmann::json& value) {
  const auto number = [&](const char* name) {
    const auto found = value.find(name);
    return found != value.end() && found->is_number() ? found->get<double>() : -1;
  };
  if (threads <= 0 || copies <= 0 || !value.is_object()) return std::nullopt;
  const Pace pace{threads, number("seconds"), number("others_share"),
                  std::max(0.0, number("busy_cores")), copies};
  return pace.seconds > 0 && pace.others_share >= 0 ? std::optional(pace) : std::nullopt;
}

}  // namespace

std::optional<Pace> nearest_pace(std::span<const Pace> paces, int threads, int copies) {
  const auto apart = [](int one, int other) {
    return std::abs(std::log(double(one) / std::max(1, other)));
  };
  const auto off = [&](const Pace& pace) {
    return std::tuple(apart(pace.threads, threads), apart(pace.copies, copies), -pace.threads);
  };
  const auto nearest = std::ranges::min_element(paces, {}, off);
  return nearest == paces.end() ? std::nullopt : std::optional(*nearest);
}

std::vector<Pace> PaceCache::find(const std::string& key) const {
  std::vector<Pace> found;
  const std::string begin = key + ' ';
  const nlohmann::json paces = file_.read();  // must outlive the loop over it
  if (!paces.is_object()) return found;
  for (const auto& [name, value] : paces.items()) {
    if (!name.starts_with(begin)) continue;
    const std::string threads = name.substr(begin.size());
    const std::size_t times = threads.find('x');
    const int copies = times < threads.size() ? std::atoi(threads.c_str() + times + 1) : 1;
    if (const auto pace = pace_of(std::atoi(threads.c_str()), copies, value)) {
      found.push_back(*pace);
    }
  }
  return found;
}

void PaceCache::keep(const std::string& key, const Pace& pace) const {
  constexpr std::size_t kMost = 10'000;
  file_.change([&](nlohmann::json paces) {
    const bool goes_on = paces.is_object() && paces.size() < kMost;
    if (!goes_on) paces = nlohmann::json::object();
    const std::string name = name_in_file(key, pace);
    const auto kept = paces.find(name);
    const std::optional<Pace> known =
        kept != paces.end() ? pace_of(pace.threads, pace.copies, *kept) : std::nullopt;
    const bool is_better = known && !is_beside_others(known->others_share);
    if (!is_better || !is_beside_others(pace.others_share)) {
      paces[name] = {{"seconds", pace.seconds}, {"others_share", pace.others_share}};
      if (pace.busy_cores > 0) paces[name]["busy_cores"] = pace.busy_cores;
    }
    return paces;
  });
}

}  // namespace paceline
