// A device whose kernels are seen on a timeline.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "trace/timeline.h"

namespace paceline {

/// What `device` does, with an event for each run of a kernel: its op, node and shapes, and the
/// bytes of its inputs and outputs. On a device with a queue of its own that is how long queueing
/// took. `timeline` must outlive the device and its kernels.
std::unique_ptr<Device> make_traced_device(std::unique_ptr<Device> device, Timeline& timeline);

}  // namespace paceline
