#include "train/worker_device.h"

#include <algorithm>

#include "base/cores.h"
#include "run/task_devices.h"

namespace paceline {

DeviceOptions worker_device(const Cluster& cluster) {
  return {.kind = cluster.device.kind,
          .index = cluster.device.index,
          .threads = threads_of_worker(cluster, usable_cores(), cluster.launch.workers),
          .sim_step_ms = cluster.device.sim_step_ms,
          .sim_gflops = cluster.device.sim_gflops,
          .sim_copy_gbps = cluster.device.sim_copy_gbps,
          .sim_compute = cluster.device.sim_compute,
          .cuda_check = cluster.device.cuda_check,
          .cuda_tf32 = cluster.device.cuda_tf32,
          .cuda_deterministic = cluster.device.cuda_deterministic};
}

DeviceOptions tower_device(const Cluster& cluster, int tower) {
  DeviceOptions device = worker_device(cluster);
  const int shared = device.threads / cluster.towers;
  const int rest = device.threads % cluster.towers;
  device.index += tower;
  device.threads = std::max(1, shared + (tower < rest ? 1 : 0));
  return device;
}

}  // namespace paceline
