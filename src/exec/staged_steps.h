// A store in host memory, for a device whose kernels do not reach that.
#pragma once

#include <memory>

#include "exec/plan.h"
#include "kernels/device.h"

namespace paceline {

/// `steps` itself where the store gives memory of `device`. For a store in host memory: steps whose
/// memory is the device's. Values are uploaded when the plan needs them (of a sparse variable the
/// rows that the batch reads), contributions are downloaded to the store's place when they are
/// ready, and the store gets the event of that copy. Throws kFailedPrecondition for a store in the
/// memory of another device. `plan` and `device` must outlive the steps.
std::unique_ptr<StoreSteps> steps_on(Device& device, std::unique_ptr<StoreSteps> steps,
                                     const Plan& plan);

}  // namespace paceline
