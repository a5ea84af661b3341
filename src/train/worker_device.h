// The device that a worker computes with.
#pragma once

#include "kernels/device.h"
#include "paceline/cluster.h"

namespace paceline {

/// Returns the options of the device, from --device and --threads: that of this process, alone or
/// as a worker, or of each worker that it starts.
DeviceOptions worker_device(const Cluster& cluster);

}  // namespace paceline
