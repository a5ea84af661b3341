// A device whose kernels appear on a timeline.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "trace/timeline.h"

namespace paceline {

/// Wraps `device`, and adds an event for each run of a kernel, with its op, node, shapes, and the
/// bytes of its inputs and outputs. On a device with its own queue, the event shows the time of
/// queueing. A device with a QueueClock has a row of its own, where events of the category "on
/// device" show when it ran the kernel or made a copy: from the end of what was queued before,
/// which on an idle device includes the time of queueing. All of them are there after
/// synchronize(). `timeline` must outlive the device and its kernels.
std::unique_ptr<Device> make_traced_device(std::unique_ptr<Device> device, Timeline& timeline);

}  // namespace paceline
