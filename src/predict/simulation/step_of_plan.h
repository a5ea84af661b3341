// The simulator's step, made from a plan, or from a model of which only sizes are known.
#pragma once

#include <span>

#include "exec/plan.h"
#include "predict/roof.h"
#include "predict/simulation/simulated_job.h"

namespace paceline {

/// The pace of a worker's device.
struct DevicePace {
  double step_seconds = 0;  // the time of all kernels of a step; 0: it follows from their costs
  Roof roof = {};           // the rates of the threads that run kernels
  /// The host's cores that kernels use on each tower; 0: the worker has its own device, which uses
  /// neither these cores nor the host's memory.
  int threads = 0;
  double busy = 1;            // the part of the kernels' time in which these threads compute
  int towers = 1;             // how many such devices the worker has, which make its steps together
  int rule_threads = 1;       // threads that apply rules in the worker
  double launch_seconds = 0;  // what each kernel takes beside its time at the roof
  // The rates of copies to and from its own memory; 0: it has none.
  double upload_bytes_per_s = 0, download_bytes_per_s = 0;
};

/// Makes the step of a worker. Several towers run their kernels at once; the host's cores sum their
/// contributions. Kernels run in plan order. A kernel's time at the roof is that of its FLOPs or of
/// its bytes, whichever is longer, and of its launch. A device with memory of its own gets the
/// batch before the first kernel, each value when the step needs it, and gives back each
/// contribution when it is ready. If the step's time is not known, each kernel takes its time at
/// the roof. Otherwise each kernel takes a part of the step's time: on cores in proportion to its
/// time at the roof, on a device in proportion to its FLOPs.
SimulatedStep simulated_step(const Plan& plan, std::span<const VariableSpec> specs,
                             const DevicePace& pace, double examples);

/// The facts of a model without a graph.
struct ModelSizes {
  double parameters = 0;
  int tensors = 10;
  double step_seconds = 0;
  double rule_bytes_per_parameter = 12;  // value read and written, gradient
};
/// Makes a step whose tensors all have one size. A third of the step's time reads the tensors one
/// after another, and the rest makes their gradients in reverse order.
SimulatedStep simulated_step(const ModelSizes& sizes);

}  // namespace paceline
