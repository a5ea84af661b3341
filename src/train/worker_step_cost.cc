#include "train/worker_step_cost.h"

#include "train/precision.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

// In frames, float32 values are rounded to the type of the wire.
void round_on_links(StepCost& work, DType wire) {
  const double part = double(size_of(wire)) / sizeof(float);
  work.link_bytes_in = work.link_bytes_out = 0;
  for (std::size_t v = 0; v < work.specs.size(); ++v) {
    const double scale = work.specs[v].dtype == DType::kFloat32 ? part : 1;
    work.bytes_in[v] *= scale;
    work.bytes_out[v] *= scale;
    work.link_bytes_in += work.bytes_in[v];
    work.link_bytes_out += work.bytes_out[v];
  }
}

}  // namespace

bool shares_memory(const Cluster& cluster) {
  if (cluster.link != "auto") return cluster.link == "shm";
  return cluster.role == Cluster::Role::kLauncher && !cluster.existing_servers;
}

// Parameter servers take contributions whole, so updates are streamed only without them.
StepCost step_work(PlanRequest request, const Cluster& cluster, const RunOptions& run) {
  request.rewrite = rewrite_to(cluster.precision);
  request.stream_updates = run.fused_update && !cluster.distributed();
  StepCost work = step_work(request, worker_device(cluster));
  if (!shares_memory(cluster)) round_on_links(work, cluster.wire);
  return work;
}

}  // namespace paceline
