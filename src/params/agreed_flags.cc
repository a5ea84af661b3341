#include "params/agreed_flags.h"

#include <fmt/format.h>

#include "params/strategies.h"

namespace paceline {
namespace {

std::string number_or(const char* word, int number) {
  return number == 0 ? word : std::to_string(number);
}

const char* name_of(OnNan on_nan) {
  if (on_nan == OnNan::kStop) return "stop";
  return on_nan == OnNan::kSkip ? "skip" : "apply";
}

}  // namespace

std::string agreed_flags(const Cluster& cluster, std::uint64_t seed) {
  std::string text;
  const auto add = [&](const char* flag, const auto& value) {
    text += fmt::format("{} {}\n", flag, value);
  };
  add("--strategy", strategy_name(cluster));
  add("--staleness", cluster.staleness);
  add("--replicas-to-aggregate", number_or("all", cluster.replicas_to_aggregate));
  add("--late", cluster.fold_late ? "fold" : "drop");
  add("--local-steps", cluster.local_steps);
  add("--outer-rate", cluster.outer_rate);
  add("--outer-momentum", cluster.outer_momentum);
  add("--outer-fragments", number_or("the usual", cluster.outer_fragments));
  add("--outer", cluster.outer_async ? "async" : "sync");
  add("--outer-delay", number_or("the usual", cluster.outer_delay));
  add("--accumulate", cluster.accumulate);
  add("--shard", cluster.sharding == Sharding::kDynamic ? "dynamic" : "static");
  add("--sync-batch-norm", cluster.sync_batch_norm ? "given" : "not given");
  add("--on-nan", name_of(cluster.on_nan));
  add("--collectives", cluster.collectives);
  add("--tls", cluster.security.tls == Tls::kAlways ? "on" : "off-host");
  add("--insecure", cluster.security.tls == Tls::kNever ? "given" : "not given");
  add("--seed", seed);
  return text;
}

}  // namespace paceline
