#include "params/hybrid/hybrid_strategy.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "params/collective/allreduce_strategy.h"
#include "params/collective/collective_store.h"
#include "params/hybrid/hybrid_store.h"
#include "params/worker/ps_strategy.h"

namespace paceline {
std::string why_not_hybrid(const Cluster& cluster, int workers) {
  if (workers == 1) {
    return "needs several workers, among which dense variables are reduced: with one, take "
           "--strategy sync";
  }
  if (cluster.train.on_nan == OnNan::kSkip) {
    return "does not go with --on-nan skip: the ps tasks and the workers would leave out different "
           "steps; take --strategy sync";
  }
  if (cluster.train.sharding == Sharding::kDynamic) {
    return "does not go with --shard dynamic: take --strategy sync";
  }
  return "";
}

std::string why_not_hybrid(const std::vector<VariableSpec>& variables) {
  const auto sparse = std::ranges::count_if(variables, &VariableSpec::sparse);
  if (sparse == 0) {
    return "needs a sparse variable, such as an embedding that is read by rows, and this model has "
           "none: take --strategy sync, or --ps 0 --strategy allreduce";
  }
  if (std::size_t(sparse) < variables.size()) return "";
  return "needs a dense variable, and all of this model are sparse: take --strategy sync";
}

JoinedStrategy make_hybrid_strategy(const JoinOptions& options,
                                    std::vector<VariableSpec> variables) {
  std::vector<VariableSpec> sparse = part_of(variables, true), dense = part_of(variables, false);
  const std::shared_ptr<PsStore> of_ps = join_ps_store(options, std::move(sparse));
  RoundFence& rounds = of_ps->round_fence();
  const auto of_workers = join_allreduce(options, std::move(dense), &rounds);
  // The ps tasks have values, but this worker has founded a new group, since it has found no worker
  // that trains. So the dense values that belong to those of the ps tasks are lost, and the ps
  // tasks must begin again.
  if (options.cluster.is_chief() && !of_workers->was_initialised() && of_ps->was_initialised()) {
    rounds.begin_again("the workers that had the dense variables are all lost",
                       of_workers->unreached());
  }
  return with_both({of_ps, of_ps}, {of_workers, of_workers}, rounds, std::move(variables));
}

}  // namespace paceline
