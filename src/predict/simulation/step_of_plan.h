// The step of a plan, or of a model of which only sizes are known, as the simulator takes it.
#pragma once

#include <span>

#include "exec/plan.h"
#include "predict/roof.h"
#include "predict/simulation/simulated_job.h"

namespace paceline {

/// The pace of a worker's device.
struct DevicePace {
  double step_seconds = 0;      // of all kernels of a step; 0: they follow from their costs
  Roof roof = {};               // then: of all threads of the worker
  int threads = 0;              // of kernels on the cores of the host; 0: a device of its own
  double busy = 1;              // the part of the kernels' time in which these threads compute
  int towers = 1;               // such devices of the worker, which make its steps together
  int rule_threads = 1;         // that apply rules in the worker
  double copy_bytes_per_s = 0;  // to and from a memory of its own; 0: it has none
};

/// Several towers run their kernels at once; what they contribute is summed on the host's cores.
/// Kernels run in the order of the plan, each by its part of the FLOPs, or by the longer of its
/// FLOPs and its bytes where these follow from the roof.
SimulatedStep simulated_step(const Plan& plan, std::span<const VariableSpec> specs,
                             const DevicePace& pace, double examples);

/// The facts of a model of which there is no graph.
struct ModelSizes {
  double parameters = 0;
  int tensors = 10;
  double step_seconds = 0;
  double rule_bytes_per_parameter = 12;  // value read and written, gradient
};
/// Tensors of one size: a third of the step reads them one after the other, and the rest makes
/// their gradients in the other order.
SimulatedStep simulated_step(const ModelSizes& sizes);

}  // namespace paceline
