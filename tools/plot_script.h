// The script that gnuplot draws from.
#pragma once

#include <string>
#include <vector>

#include "summary/event_folder.h"

namespace paceline {

/// One run: how it was named, and what its tasks wrote.
struct PlottedRun {
  std::string name;
  std::vector<TaskSummaries> tasks;
};

/// Panels below one another, over the global step: loss, perplexity where there is one, speed, and
/// where the first task's time went when there is one run. `terminal`: "svg", "pngcairo".
std::string plot_script(const std::vector<PlottedRun>& runs, const std::string& terminal,
                        const std::string& output);

}  // namespace paceline
