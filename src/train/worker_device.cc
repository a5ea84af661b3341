#include "train/worker_device.h"

#include <algorithm>
#include <thread>

namespace paceline {

DeviceOptions worker_device(const Cluster& cluster) {
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  return {.kind = cluster.device.kind,
          .index = cluster.device.index,
          .threads = cluster.threads > 0 ? cluster.threads : cores,
          .sim_step_ms = cluster.device.sim_step_ms,
          .sim_gflops = cluster.device.sim_gflops};
}

}  // namespace paceline
