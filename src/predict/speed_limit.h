// The most steps a second that devices, links and memory allow, whatever the protocol.
#pragma once

#include "predict/simulation/simulated_job.h"

namespace paceline {

/// Each device's own pace; the bytes that must pass the link of each host, each way; the passes of
/// rules over each machine's memory. All that is not one of these counts as free.
double speed_limit(const SimulatedJob& job);

}  // namespace paceline
