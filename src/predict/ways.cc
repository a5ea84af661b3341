#include "predict/ways.h"

#include <algorithm>

#include "params/strategies.h"
#include "predict/simulation/simulate.h"

namespace paceline {
namespace {

// 1, 2, 4 … and the most.
std::vector<int> counts_up_to(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(std::max(1, most));
  return counts;
}

std::vector<int> worker_counts(const WaysAsked& asked) {
  if (asked.workers) return {*asked.workers};
  return counts_up_to(asked.most_workers);
}

bool has_ps(const Strategy& strategy) { return strategy.kind == ClusterKind::kWithPs; }

std::vector<int> ps_counts(const WaysAsked& asked, bool with_ps) {
  if (!with_ps) return {0};
  if (asked.ps) return {*asked.ps};
  return {1, 2, 4};
}

bool is_tried(const WaysAsked& asked, const Strategy& strategy) {
  if (strategy.kind == ClusterKind::kOneProcess) return false;
  if (asked.strategy && *asked.strategy != strategy.name) return false;
  if (asked.ps && (*asked.ps > 0) != has_ps(strategy)) return false;
  if (strategy.name == "mixed" && !asked.strategy && !asked.sparse) return false;
  if (strategy.name == "local" && asked.outer_async && !has_ps(strategy)) return false;
  if (strategy.name == "local" && !asked.strategy && !asked.links) return false;
  const auto known = simulated_strategies();
  return std::ranges::find(known, strategy.name) != known.end();
}

OuterOptions outer_of(const WaysAsked& asked, bool with_ps, int workers) {
  OuterOptions outer = asked.outer;
  if (!asked.outer_async) outer.delay = 0;
  if (asked.outer_async && outer.delay == 0) outer.delay = workers;
  if (outer.fragments == 0) outer.fragments = usual_fragments(outer.local_steps, with_ps);
  return outer;
}

}  // namespace

std::vector<Way> ways_to_try(const WaysAsked& asked) {
  std::vector<Way> ways;
  for (const int towers : counts_up_to(asked.towers)) ways.push_back({.towers = towers});
  std::vector<WireForm> wires = {{}};
  if (asked.wire) wires = {*asked.wire};
  if (!asked.wire && asked.links) wires.push_back({DType::kBFloat16});
  for (const Strategy& strategy : strategies()) {
    if (!is_tried(asked, strategy)) continue;
    for (const int ps : ps_counts(asked, has_ps(strategy))) {
      for (const int workers : worker_counts(asked)) {
        // More parameter servers than workers bring nothing; one worker has nobody to wait for.
        if (!asked.ps && ps > std::max(1, workers)) continue;
        if (workers == 1 && !asked.strategy && strategy.name != "async") continue;
        for (const WireForm& wire : wires) {
          if (!wire.exact() && !has_ps(strategy)) continue;
          ways.push_back({.strategy = std::string(strategy.name),
                          .ps = ps,
                          .workers = workers,
                          .wire = wire,
                          .accumulate = asked.accumulate,
                          .staleness = asked.staleness,
                          .replicas = asked.replicas,
                          .late = asked.late,
                          .outer = outer_of(asked, ps > 0, workers),
                          .towers = asked.towers});
        }
      }
    }
  }
  return ways;
}

}  // namespace paceline
