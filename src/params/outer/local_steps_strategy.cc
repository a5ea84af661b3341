#include "params/outer/local_steps_strategy.h"

#include <utility>

#include "params/collective/allreduce_strategy.h"
#include "params/outer/outer_store.h"
#include "params/worker/sync_strategy.h"

namespace paceline {

Distribution make_local_steps_strategy(const DistributionOptions& options,
                                       std::vector<VariableSpec> variables) {
  const Cluster& cluster = options.cluster;
  const bool with_ps = !cluster.spec.ps.empty();
  const OuterOptions how = outer_options_of(cluster, with_ps);
  DistributionOptions below = options;
  below.last_step = outer_rounds(variables, how, options.last_step);
  const auto make = with_ps ? make_sync_strategy : make_allreduce_strategy;
  Distribution rounds = make(below, outer_variables(variables, how));
  return with_outer_rule(std::move(rounds), std::move(variables), how, options);
}

}  // namespace paceline
