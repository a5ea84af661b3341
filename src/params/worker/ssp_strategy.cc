#include "params/worker/ssp_strategy.h"

#include <utility>

#include "params/worker/async_strategy.h"

namespace paceline {

Distribution make_ssp_strategy(const DistributionOptions& options,
                               std::vector<VariableSpec> variables) {
  PsStoreOptions ps = ps_store_options(options);
  ps.aggregation = {.kind = AggregationKind::kBounded, .staleness = options.cluster.staleness};
  return join_ps(ps, options, std::move(variables));
}

}  // namespace paceline
