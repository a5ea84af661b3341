// The script that gnuplot draws from.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "summary/event_folder.h"

namespace paceline {

/// One run: how it was named, and what its tasks wrote.
struct PlottedRun {
  std::string name;
  std::vector<TaskSummaries> tasks;
};

struct Plot {
  std::vector<PlottedRun> runs;
  std::string title;       // above all panels
  std::size_t smooth = 0;  // lines show the mean of so many points, over them; 0: as many as suit
};

/// Panels below one another, over the global step: loss, perplexity and staleness where there are
/// some, the model's own numbers, speed, and where the time of each task went when there is one
/// run. `terminal`: "svg", "pngcairo".
std::string plot_script(const Plot& plot, const std::string& terminal, const std::string& output);

}  // namespace paceline
