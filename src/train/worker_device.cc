#include "train/worker_device.h"

#include "base/cores.h"
#include "cluster/launch/launcher.h"

namespace paceline {

DeviceOptions worker_device(const Cluster& cluster) {
  return {.kind = cluster.device.kind,
          .index = cluster.device.index,
          .threads = threads_of_worker(cluster, cores_of_machine()),
          .sim_step_ms = cluster.device.sim_step_ms,
          .sim_gflops = cluster.device.sim_gflops};
}

}  // namespace paceline
