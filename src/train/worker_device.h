// What a worker computes with.
#pragma once

#include "kernels/device.h"
#include "paceline/cluster.h"

namespace paceline {

/// Of this process, as a worker of the cluster or alone: --device and --threads.
DeviceOptions worker_device(const Cluster& cluster);

}  // namespace paceline
