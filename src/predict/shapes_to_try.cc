#include "predict/shapes_to_try.h"

#include <algorithm>

#include "params/strategy/strategies.h"

namespace paceline {
namespace {

// Returns 1, 2, 4 … and `most`.
std::vector<int> counts_up_to(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(std::max(1, most));
  return counts;
}

std::vector<int> worker_counts(const ShapesAsked& asked) {
  if (asked.workers) return {*asked.workers};
  return counts_up_to(asked.most_workers);
}

std::vector<int> ps_counts(const ShapesAsked& asked, bool with_ps) {
  if (!with_ps) return {0};
  if (asked.ps) return {*asked.ps};
  return {1, 2, 4};
}

bool is_tried(const ShapesAsked& asked, const StrategyKind& kind) {
  if (kind.cluster == ClusterKind::kOneProcess) return false;
  if (asked.ps && (*asked.ps > 0) != kind.has_ps()) return false;
  if (kind.makes_local_steps && !kind.in_rounds(asked.strategy) && !kind.has_ps()) return false;
  if (asked.names_strategy()) return asked.strategy.name == kind.name;
  return (!kind.splits_variables() || asked.sparse) && (kind.exact() || asked.links);
}

}  // namespace

std::vector<JobShape> shapes_to_try(const ShapesAsked& asked) {
  std::vector<JobShape> shapes;
  for (const int towers : counts_up_to(asked.towers)) shapes.push_back({.towers = towers});
  std::vector<WireForm> wires = {{}};
  if (asked.wire) wires = {*asked.wire};
  if (!asked.wire && asked.links) wires.push_back({DType::kBFloat16});
  for (const StrategyKind* const kind : strategies()) {
    if (!is_tried(asked, *kind)) continue;
    const bool usual = kind == &default_strategy(ClusterKind::kWithPs);
    for (const int ps : ps_counts(asked, kind->has_ps())) {
      for (const int workers : worker_counts(asked)) {
        // More parameter servers than workers gain nothing. All strategies are alike for a single
        // worker, which waits for nobody.
        if (!asked.ps && ps > std::max(1, workers)) continue;
        if (workers == 1 && !asked.names_strategy() && !usual) continue;
        for (const WireForm& wire : wires) {
          if (!wire.exact() && !kind->has_ps()) continue;
          shapes.push_back({.strategy = settled(*kind, asked.strategy),
                            .ps = ps,
                            .workers = workers,
                            .wire = wire,
                            .accumulate = asked.accumulate,
                            .towers = asked.towers});
        }
      }
    }
  }
  return shapes;
}

}  // namespace paceline
