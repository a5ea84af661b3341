// Makes a store in host memory usable for a device whose kernels do not reach that memory.
#pragma once

#include <memory>

#include "exec/plan.h"
#include "kernels/device.h"

namespace paceline {

/// Returns `steps` itself when the store gives memory of `device`, and for a store in host memory
/// steps whose memory is the device's. These upload values when the plan needs them (of a sparse
/// variable the rows that the batch reads), and download contributions to the store's place when
/// they are ready; the store gets the event of that copy. Throws kFailedPrecondition for a store in
/// the memory of another device. `plan` and `device` must outlive the steps.
std::unique_ptr<StoreSteps> steps_on(Device& device, std::unique_ptr<StoreSteps> steps,
                                     const Plan& plan);

}  // namespace paceline
