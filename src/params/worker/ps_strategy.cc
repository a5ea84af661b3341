#include "params/worker/ps_strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "base/print_text.h"
#include "params/strategy/strategies.h"
#include "params/wire/travelling_type.h"

namespace paceline {
namespace {

Duration from_seconds(double seconds) { return Duration(std::int64_t(seconds * 1e9)); }

}  // namespace

PsStoreOptions ps_store_options(const JoinOptions& options) {
  const Cluster& cluster = options.cluster;
  PsStoreOptions ps;
  ps.spec = cluster.spec;
  ps.task = cluster.task;
  ps.cluster_id = cluster.cluster_id;
  ps.agreed_flags = agreed_flags(cluster, options.seed, options.data);
  ps.link = cluster.links.kind;
  ps.security = cluster.links.security;
  ps.join_timeout = from_seconds(cluster.links.join_timeout_s);
  ps.reconnect_timeout = from_seconds(cluster.links.reconnect_timeout_s);
  ps.wire = {cluster.links.wire, cluster.links.top_k};
  ps.error_feedback = cluster.links.error_feedback;
  ps.aggregation = aggregation_of(strategy_kind(cluster), cluster.strategy, cluster.spec);
  ps.on_nan = cluster.train.on_nan;
  ps.shares_records = cluster.shares_records();
  ps.last_step = options.last_step;
  ps.timeline = options.timeline;
  ps.progress = options.progress;
  ps.clock = options.clock;
  ps.account = options.account;
  ps.say = options.say;
  ps.say_after = options.say_after;
  ps.check_interrupt = options.check_interrupt;
  return ps;
}

std::shared_ptr<PsStore> join_ps_store(const JoinOptions& options,
                                       std::vector<VariableSpec> variables) {
  const Cluster& cluster = options.cluster;
  const PsStoreOptions how = ps_store_options(options);
  if (cluster.existing_servers && !cluster.launch.launched && how.say) {
    how.say(fmt::format("uses existing servers, which stay: {}", fmt::join(how.spec.ps, ", ")));
  }
  std::shared_ptr<PsStore> joined = PsStore::join(how, std::move(variables));
  if (!how.wire.exact() && cluster.is_chief() && !joined->rounds() && how.say) {
    const std::string flag =
        cluster.links.top_k > 0
            ? fmt::format("--top-k {} leaves out", cluster.links.top_k)
            : fmt::format("--wire {} rounds", travelling_name(cluster.links.wire));
    how.say(flag +
            " nothing: all parameter servers share this worker's memory, and no values travel "
            "(--link tcp sends them)");
  }
  if (cluster.show_placement) {
    print_text(stdout, joined->placement_text());
    std::fflush(stdout);
  }
  return joined;
}

JoinedStrategy make_ps_strategy(const JoinOptions& options, std::vector<VariableSpec> variables) {
  const std::shared_ptr<PsStore> joined = join_ps_store(options, std::move(variables));
  return {joined, joined};
}

}  // namespace paceline
