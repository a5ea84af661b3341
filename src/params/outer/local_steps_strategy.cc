#include "params/outer/local_steps_strategy.h"

#include <utility>

#include "paceline/error.h"
#include "params/collective/allreduce_strategy.h"
#include "params/outer/outer_store.h"
#include "params/worker/ps_strategy.h"

namespace paceline {
namespace {

auto strategy_below(const Cluster& cluster) {
  if (!cluster.spec.ps.empty()) return make_ps_strategy;
  if (!cluster.strategy.outer_async) return make_allreduce_strategy;
  throw Error(ErrorCode::kInvalidArgument,
              "[strategy] local steps whose outer rule is applied without rounds (--outer async) "
              "need parameter servers");
}

}  // namespace

JoinedStrategy make_local_steps_strategy(const JoinOptions& options,
                                         std::vector<VariableSpec> variables) {
  const Cluster& cluster = options.cluster;
  const OuterOptions how =
      outer_options_of(cluster.strategy, !cluster.spec.ps.empty(), cluster.workers());
  JoinOptions below = options;
  below.last_step = outer_rounds(variables, how, options.last_step);
  JoinedStrategy made = strategy_below(cluster)(below, outer_variables(variables, how));
  return with_outer_rule(std::move(made), std::move(variables), how, options);
}

}  // namespace paceline
