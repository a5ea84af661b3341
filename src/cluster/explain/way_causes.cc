// Other ways to distribute, which the predictor has compared with this one before the first step.
#include <fmt/format.h>

#include <algorithm>

#include "cluster/explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastIdle = 0.15;  // of a worker's time, in which it does not compute

double idle(const RunFacts& facts) { return facts.mean_transfer() + facts.mean_share("wait"); }

}  // namespace

// Of a run that is slower than expected, another way need not be as fast as it was expected to be
// either; one that is faster than expected has less to gain.
std::optional<OtherWay> best_other_way(const RunFacts& facts) {
  const auto& expected = facts.run().expected;
  if (!expected || expected->other_ways.empty() || facts.steps_per_s() <= 0) return {};
  const auto& [flags, speed] = *std::ranges::max_element(
      expected->other_ways, {}, [](const auto& way) { return way.second; });
  const double gain = std::min({speed / expected->steps_per_s, speed / facts.steps_per_s(),
                                RunFacts::gain_without(idle(facts))});
  return OtherWay{flags.empty() ? "One process, without --ps and --workers" : flags, gain};
}

std::vector<Finding> slow_way(const RunFacts& facts) {
  const auto way = best_other_way(facts);
  if (!way || idle(facts) < kLeastIdle) return {};
  return {{.cause = Cause::kWay,
           .sentence = fmt::format("Workers wait {:.0f}% of their time for values and for each "
                                   "other.",
                                   100 * idle(facts)),
           .advice = way->flags,
           .gain = way->gain}};
}

}  // namespace paceline
