// What a worker computes with.
#pragma once

#include "kernels/device.h"
#include "paceline/cluster.h"

namespace paceline {

/// Of this process, alone or as a worker, or of each that it starts: --device and --threads.
DeviceOptions worker_device(const Cluster& cluster);

}  // namespace paceline
