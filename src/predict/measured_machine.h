// A run's facts about its machine: the bound of the run's speed, and the pace of its kernels.
#pragma once

#include <optional>

#include "paceline/run_options.h"
#include "run/report/report.h"

namespace paceline {

/// Returns the seconds that a step's kernels took while they had a core: leaves out the time in
/// which the task waited for a free core because other programs ran. Returns nullopt if no step was
/// timed.
inline std::optional<double> kernel_seconds(const TaskReport& task) {
  if (!task.steps_per_s) return std::nullopt;
  for (const auto& [name, share] : task.share) {
    if (name != "compute") continue;
    return share * (1 - task.use.pressure.waited.value_or(0)) / *task.steps_per_s;
  }
  return std::nullopt;
}

/// Makes an observer for a run on one machine. The observer adds to the report how fast that
/// machine could be, and keeps the time of a step's kernels for later predictions.
MakeObserver measure_machine();

}  // namespace paceline
