// A device whose kernels are seen on a timeline.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "trace/timeline.h"

namespace paceline {

/// Wraps `device` and adds an event for each run of a kernel, with its op, node and shapes and the
/// bytes of its inputs and outputs. On a device with a queue of its own the event is the time that
/// queueing took. `timeline` must outlive the device and its kernels.
std::unique_ptr<Device> make_traced_device(std::unique_ptr<Device> device, Timeline& timeline);

}  // namespace paceline
