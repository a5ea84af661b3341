// The case `step`: a workload in a cluster's shape, beside the least that it could take.
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
  /// Of `paceline train`, the model first.
  std::vector<std::string> arguments;

  /// "mlp, 1 ps + 4 workers".
  std::string name() const;
};

/// Throws kUsage on a case that cannot be measured.
void check(const StepCase& one);

/// Runs the case as often as the recorder says, with the roof measured before each run and after
/// the last; a run ends after 5 seconds when nothing else is said. Figures: steps/s of all workers
/// beside the bound's, the bound's parts, examples/s, the roof; of one process also its memory
/// beside variables, slots, gradients and activations; of fetch the times of its report.
void measure_step(Recorder& recorder, const StepCase& one);

}  // namespace paceline::bench
