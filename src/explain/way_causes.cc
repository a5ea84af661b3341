// Finds faster ways to distribute, which the predictor compared with the run's own before the first
// step.
#include <fmt/format.h>

#include <algorithm>

#include "explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastIdle = 0.15;  // the fraction of a worker's time in which it does not compute

double idle(const RunFacts& facts) { return facts.mean_transfer() + facts.mean_share("wait"); }

// In a run that is slower than expected, another way may be slower than expected, too. A run that
// is faster than expected has less to gain. So the smallest of the gains counts.
template <typename Counts>
std::optional<BetterShape> fastest(const RunFacts& facts, Counts&& counts) {
  if (facts.steps_per_s() <= 0) return {};
  const PredictedShape* best = nullptr;
  for (const PredictedShape& shape : facts.other_shapes()) {
    if (counts(shape) && (best == nullptr || shape.steps_per_s > best->steps_per_s)) best = &shape;
  }
  if (best == nullptr) return {};
  const double gain =
      std::min({best->steps_per_s / facts.run().expected->steps_per_s,
                best->steps_per_s / facts.steps_per_s(), RunFacts::gain_without(idle(facts))});
  const std::string& flags = best->flags;
  return BetterShape{flags.empty() ? "One process, without --ps and --workers" : flags, gain};
}

// True if the shapes differ only in the wire, and its type is smaller than float32.
bool only_narrows_wire(JobShape shape, const JobShape& own) {
  const bool narrower = shape.wire.numbers.type != DType::kFloat32 && own.wire.exact();
  shape.wire = own.wire;
  return narrower && shape == own;
}

}  // namespace

// Ways with local steps come last, since each of their steps learns less.
std::optional<BetterShape> best_other_shape(const RunFacts& facts) {
  const auto exact = fastest(facts, [](const PredictedShape& each) {
    return !each.shape || !each.shape->makes_local_steps();
  });
  return exact && exact->gain >= kWorthSaying
             ? exact
             : fastest(facts, [](const PredictedShape&) { return true; });
}

std::optional<BetterShape> narrower_wire(const RunFacts& facts) {
  const std::optional<JobShape>& own = facts.own_shape();
  if (!own) return {};
  return fastest(facts, [&](const PredictedShape& each) {
    return each.shape && only_narrows_wire(*each.shape, *own);
  });
}

std::vector<Finding> slow_way(const RunFacts& facts) {
  auto shape = best_other_shape(facts);
  if (!shape || idle(facts) < kLeastIdle) return {};
  // The smaller change is named if it brings nearly as much.
  constexpr double kNearlyAsMuch = 0.85;
  const auto wire = narrower_wire(facts);
  const bool only_wire =
      wire && wire->gain >= kNearlyAsMuch * shape->gain && facts.ps().size() == 1;
  if (only_wire) shape = wire;
  return {{.cause = only_wire ? Limit::kWire : Limit::kWay,
           .task = only_wire ? facts.ps().front()->task : "",
           .sentence = fmt::format("Workers wait {:.0f}% of their time for values and for each "
                                   "other.",
                                   100 * idle(facts)),
           .advice = shape->flags,
           .gain = shape->gain}};
}

}  // namespace paceline
