// The devices and threads that the tasks of a cluster get.
#pragma once

#include <string>

#include "paceline/cluster.h"

namespace paceline {

/// The device that a task gets, the first one where it has towers, such as "sim:1"; empty for a ps.
std::string device_of(const Cluster& cluster, const TaskId& task);
/// The same for the user: "device sim:1", "devices sim:2 to sim:3", or "no device".
std::string devices_of(const Cluster& cluster, const TaskId& task);
/// The number of threads of a worker when the tasks share `cores`.
int threads_of_worker(const Cluster& cluster, int cores);

}  // namespace paceline
