// The devices that a worker computes with.
#pragma once

#include "kernels/device.h"
#include "paceline/cluster.h"

namespace paceline {

/// Returns the options of a device, as --device and --threads say: of the device of this process
/// (alone or as a worker), or, in a launcher, of each worker. The device has all threads of the
/// task, as if it were the task's only one.
DeviceOptions worker_device(const Cluster& cluster);
/// Returns the options of one of the task's towers, from 0, with the tower's share of the threads.
DeviceOptions tower_device(const Cluster& cluster, int tower);

}  // namespace paceline
