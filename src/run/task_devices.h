// The devices and threads that the tasks of a cluster get.
#pragma once

#include <string>

#include "paceline/cluster.h"

namespace paceline {

/// The device that a task gets, the first one where it has towers, such as "sim:1"; empty for a ps.
std::string device_of(const Cluster& cluster, const TaskId& task);
/// Returns the devices as the user reads them: "device sim:1", "devices sim:2 to sim:3", or "no
/// device".
std::string devices_of(const Cluster& cluster, const TaskId& task);
/// Returns the number of threads of each of `workers` workers that share `cores`.
int threads_of_worker(const Cluster& cluster, int cores, int workers);
/// True for a task whose launcher has started all of them on its own machine, on emulated hosts of
/// it or not: on other hosts they listen elsewhere than at their addresses.
bool is_on_one_machine(const Cluster& cluster);

}  // namespace paceline
