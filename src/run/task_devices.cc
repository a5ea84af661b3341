#include "run/task_devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/device_kind.h"

namespace paceline {

std::string device_of(const Cluster& cluster, const TaskId& task) {
  if (task.role == TaskId::Role::kPs) return "";
  if (!device_kind(cluster.device.kind).is_numbered) return cluster.device.kind + ":0";
  if (cluster.device.index >= 0)
    return fmt::format("{}:{}", cluster.device.kind, cluster.device.index);
  return fmt::format("{}:{}", cluster.device.kind, task.index * cluster.towers);
}

std::string devices_of(const Cluster& cluster, const TaskId& task) {
  const std::string first = device_of(cluster, task);
  if (first.empty()) return "no device";
  if (cluster.towers == 1) return "device " + first;
  const std::size_t colon = first.find(':') + 1;
  return fmt::format("devices {} to {}{}", first, first.substr(0, colon),
                     std::stoi(first.substr(colon)) + cluster.towers - 1);
}

int threads_of_worker(const Cluster& cluster, int cores, int workers) {
  if (cluster.threads > 0) return cluster.threads;
  const int least = device_kind(cluster.device.kind).shares_cores ? cluster.towers : 1;
  return std::max(least, cores / std::max(1, workers));
}

bool is_on_one_machine(const Cluster& cluster) {
  return cluster.launch.launched && cluster.links.bind.empty();
}

}  // namespace paceline
