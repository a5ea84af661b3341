// A run's facts about its machine: the bound of its speed, and the pace of its kernels.
#pragma once

#include <optional>

#include "paceline/run_options.h"
#include "run/report/report.h"

namespace paceline {

/// Returns the seconds that the kernels of a step took while they had a core: what the task waited
/// for a free one, since other programs ran, does not count. Nothing when no step was timed.
inline std::optional<double> kernel_seconds(const TaskReport& task) {
  if (!task.steps_per_s) return std::nullopt;
  for (const auto& [name, share] : task.share) {
    if (name != "compute") continue;
    return share * (1 - task.use.pressure.waited.value_or(0)) / *task.steps_per_s;
  }
  return std::nullopt;
}

/// Makes the observer that adds to the report of a run on one machine how fast that machine could
/// be, and keeps for later predictions how long the kernels of a step take.
MakeObserver measure_machine();

}  // namespace paceline
