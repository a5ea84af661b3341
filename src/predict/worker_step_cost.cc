#include "predict/worker_step_cost.h"

#include "net/link_kind.h"
#include "params/wire/travelling_type.h"
#include "train/precision.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

// Scales the bytes that links carry: float32 values and contributions are sent in the wire's type.
void round_on_links(StepCost& work, const ContributionForm& wire) {
  constexpr std::size_t kMany = std::size_t{1} << 20;
  const auto part = [&](const ContributionForm& form) {
    return double(travelling_bytes(kMany, form)) / kMany;
  };
  work.link_bytes_in = work.link_bytes_out = 0;
  for (std::size_t v = 0; v < work.specs.size(); ++v) {
    const bool rounded = work.specs[v].dtype == DType::kFloat32;
    work.bytes_in[v] *= rounded ? part(type_of_values(wire.type)) : 1;
    work.bytes_out[v] *= rounded ? part(wire) : 1;
    work.link_bytes_in += work.bytes_in[v];
    work.link_bytes_out += work.bytes_out[v];
  }
}

}  // namespace

bool shares_memory(const Cluster& cluster) {
  if (cluster.links.security.tls == Tls::kAlways) return false;
  const LinkKind& link = link_kind(cluster.links.kind);
  if (!link.chooses) return link.shares_memory;
  return cluster.process == Cluster::Process::kLauncher && !cluster.existing_servers;
}

// Updates are streamed only if there are no other tasks, since these take whole contributions.
StepCost step_work(PlanRequest request, const Cluster& cluster, const RunOptions& run) {
  request.rewrite = rewrite_of(cluster);
  request.stream_updates = run.fused_update && !cluster.distributed();
  StepCost work = step_work(request, worker_device(cluster));
  if (!shares_memory(cluster)) round_on_links(work, {cluster.links.wire, cluster.links.top_k});
  return work;
}

}  // namespace paceline
