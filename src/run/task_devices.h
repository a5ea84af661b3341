// The devices and threads that the tasks of a cluster get.
#pragma once

#include <string>

#include "paceline/cluster.h"

namespace paceline {

/// Returns the device of a task, such as "sim:1"; the first one if the task has towers, and empty
/// for a ps.
std::string device_of(const Cluster& cluster, const TaskId& task);
/// Returns the devices as the user reads them: "device sim:1", "devices sim:2 to sim:3", or "no
/// device".
std::string devices_of(const Cluster& cluster, const TaskId& task);
/// Returns the number of threads for each of `workers` workers that share `cores` cores.
int threads_of_worker(const Cluster& cluster, int cores, int workers);
/// True for a task if its launcher has started all tasks on its own machine, on emulated hosts or
/// not. On other hosts, tasks listen at addresses other than those that the cluster names.
bool is_on_one_machine(const Cluster& cluster);

}  // namespace paceline
