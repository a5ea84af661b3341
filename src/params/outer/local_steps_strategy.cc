#include "params/outer/local_steps_strategy.h"

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/collective/allreduce_strategy.h"
#include "params/outer/outer_store.h"
#include "params/worker/async_strategy.h"
#include "params/worker/sync_strategy.h"

namespace paceline {
namespace {

// A fragment is under way for a round, and so there are few of them where there are few steps.
constexpr int kMostFragments = 4, kStepsOfFragment = 4;

// A worker waits for its reductions, so that fragments of an all-reduce would save it nothing.
int usual_fragments(const Cluster& cluster) {
  if (cluster.spec.ps.empty()) return 1;
  return std::clamp(cluster.local_steps / kStepsOfFragment, 1, kMostFragments);
}

// The workers' changes count as much as in a round of all of them.
int delay_of(const Cluster& cluster) {
  return cluster.outer_delay > 0 ? cluster.outer_delay : int(cluster.spec.workers.size());
}

auto strategy_below(const Cluster& cluster) {
  if (!cluster.spec.ps.empty()) {
    return cluster.outer_async ? make_async_strategy : make_sync_strategy;
  }
  if (!cluster.outer_async) return make_allreduce_strategy;
  throw Error(ErrorCode::kInvalidArgument,
              "[strategy] local steps whose outer rule is applied without rounds (--outer async) "
              "need parameter servers");
}

}  // namespace

Distribution make_local_steps_strategy(const DistributionOptions& options,
                                       std::vector<VariableSpec> variables) {
  const Cluster& cluster = options.cluster;
  OuterOptions how{.local_steps = cluster.local_steps,
                   .rate = cluster.outer_rate,
                   .momentum = cluster.outer_momentum,
                   .fragments = cluster.outer_fragments};
  if (how.fragments == 0) how.fragments = usual_fragments(cluster);
  if (cluster.outer_async) how.delay = delay_of(cluster);
  DistributionOptions below = options;
  below.last_step = outer_rounds(variables, how, options.last_step);
  Distribution made = strategy_below(cluster)(below, outer_variables(variables, how));
  return with_outer_rule(std::move(made), std::move(variables), how, options);
}

}  // namespace paceline
