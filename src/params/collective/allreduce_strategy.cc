#include "params/collective/allreduce_strategy.h"

#include <memory>
#include <utility>

#include "params/collective/collective_store.h"

namespace paceline {

JoinedStrategy make_allreduce_strategy(const JoinOptions& options,
                                       std::vector<VariableSpec> variables) {
  const auto joined = join_allreduce(options, std::move(variables), nullptr);
  return {joined, joined};
}

std::shared_ptr<CollectiveStore> join_allreduce(const JoinOptions& options,
                                                std::vector<VariableSpec> variables,
                                                RoundFence* rounds) {
  const Cluster& cluster = options.cluster;
  CollectiveOptions how;
  how.spec = cluster.spec;
  how.task = cluster.task;
  how.cluster_id = cluster.cluster_id;
  how.agreed_flags = agreed_flags(cluster, options.seed, options.data);
  how.bind = cluster.links.bind;
  how.link = cluster.links.kind;
  how.security = cluster.links.security;
  how.collectives = cluster.links.collectives;
  how.join_timeout = Duration(std::int64_t(cluster.links.join_timeout_s * 1e9));
  how.on_nan = cluster.train.on_nan;
  how.shares_records = cluster.shares_records();
  how.sync_batch_norm = cluster.train.sync_batch_norm;
  how.pool = options.pool;
  how.account = options.account;
  how.timeline = options.timeline;
  how.progress = options.progress;
  how.clock = options.clock;
  how.say = options.say;
  how.say_after = options.say_after;
  how.check_interrupt = options.check_interrupt;
  how.rounds = rounds;
  if (rounds != nullptr) {
    how.check_interrupt = [rounds, check = options.check_interrupt] {
      rounds->check();
      if (check) check();
    };
  }
  return CollectiveStore::join(how, std::move(variables));
}

}  // namespace paceline
