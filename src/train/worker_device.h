// The devices that a worker computes with.
#pragma once

#include "kernels/device.h"
#include "paceline/cluster.h"

namespace paceline {

/// Returns the options of the device, from --device and --threads: that of this process, alone or
/// as a worker, or of each worker that it starts. With all its threads, as if it had one device.
DeviceOptions worker_device(const Cluster& cluster);
/// Returns those of one of its towers, from 0, with its share of the threads.
DeviceOptions tower_device(const Cluster& cluster, int tower);

}  // namespace paceline
