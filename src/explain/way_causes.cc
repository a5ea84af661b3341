// Other ways to distribute, which the predictor has compared with this one before the first step.
#include <fmt/format.h>

#include <algorithm>

#include "explain/causes.h"
#include "run/report/report_strategy.h"

namespace paceline {
namespace {

constexpr double kLeastIdle = 0.15;  // of a worker's time, in which it does not compute

double idle(const RunFacts& facts) { return facts.mean_transfer() + facts.mean_share("wait"); }

// Of a run that is slower than expected, another way need not be as fast as it was expected to be
// either; one that is faster than expected has less to gain.
template <typename Counts>
std::optional<OtherWay> fastest(const RunFacts& facts, Counts&& counts) {
  const auto& expected = facts.run().expected;
  if (!expected || facts.steps_per_s() <= 0) return {};
  const std::pair<std::string, double>* best = nullptr;
  for (const auto& way : expected->other_ways) {
    if (counts(way.first) && (best == nullptr || way.second > best->second)) best = &way;
  }
  if (best == nullptr) return {};
  const auto& [flags, speed] = *best;
  const double gain = std::min({speed / expected->steps_per_s, speed / facts.steps_per_s(),
                                RunFacts::gain_without(idle(facts))});
  return OtherWay{flags.empty() ? "One process, without --ps and --workers" : flags, gain};
}

}  // namespace

// Local steps learn less each: they are told where nothing else is worth telling.
std::optional<OtherWay> best_other_way(const RunFacts& facts) {
  const auto exact = fastest(facts, [](const std::string& flags) {
    const StrategyKind* const kind = strategy_kind_of_way(flags);
    return kind == nullptr || kind->exact();
  });
  return exact && exact->gain >= kWorthSaying
             ? exact
             : fastest(facts, [](const std::string&) { return true; });
}

std::optional<OtherWay> narrower_wire(const RunFacts& facts) {
  const auto& expected = facts.run().expected;
  if (!expected || expected->way.empty()) return {};
  const auto own = flags_in(expected->way);
  return fastest(facts, [&](const std::string& way) {
    const auto flags = flags_in(way);
    const auto [same, other] = std::ranges::mismatch(own, flags);
    return same == own.end() && other != flags.end() && other->first == "--wire";
  });
}

std::vector<Finding> slow_way(const RunFacts& facts) {
  auto way = best_other_way(facts);
  if (!way || idle(facts) < kLeastIdle) return {};
  // The smaller change is told where it brings nearly as much.
  constexpr double kNearlyAsMuch = 0.85;
  const auto wire = narrower_wire(facts);
  const bool only_wire = wire && wire->gain >= kNearlyAsMuch * way->gain && facts.ps().size() == 1;
  if (only_wire) way = wire;
  return {{.cause = only_wire ? Cause::kWire : Cause::kWay,
           .task = only_wire ? facts.ps().front()->task : "",
           .sentence = fmt::format("Workers wait {:.0f}% of their time for values and for each "
                                   "other.",
                                   100 * idle(facts)),
           .advice = way->flags,
           .gain = way->gain}};
}

}  // namespace paceline
