// The case `step`: a workload in a cluster's shape, beside the least time that it could take.
#pragma once

#include <string>
#include <vector>

#include "bench/recorder.h"
#include "models/model.h"

namespace paceline::bench {

struct StepCase {
  const models::Model* model = nullptr;
  Settings settings;
  Cluster cluster;
  RunOptions run;
  /// The arguments of `paceline train`; the model comes first.
  std::vector<std::string> arguments;

  /// Returns a name such as "mlp, 1 ps + 4 workers".
  std::string name() const;
};

/// Throws kUsage for a case that cannot be measured.
void check(const StepCase& one);

/// Runs the case as often as the recorder says, and measures the roof before each run and after the
/// last. A run ends after 5 seconds unless the arguments say otherwise. Figures: all workers'
/// steps/s beside the bound's, the bound's parts, examples/s, and the roof; for one process, also
/// its memory beside variables, slots, gradients and activations; for fetch, the times of its
/// report.
void measure_step(Recorder& recorder, const StepCase& one);

}  // namespace paceline::bench
