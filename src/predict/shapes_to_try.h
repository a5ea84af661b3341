// The shapes of a job that are compared.
#pragma once

#include <optional>
#include <vector>

#include "predict/prediction.h"

namespace paceline {

/// The parts of a job that the user has fixed; the other parts are varied.
struct ShapesAsked {
  Strategy strategy = {};  // without a name: any strategy, with these options
  std::optional<int> ps, workers;
  std::optional<WireForm> wire;
  int accumulate = 1;
  int most_workers = 8;  // the number of workers that fit
  int towers = 1;        // devices of each worker
  bool sparse = false;   // the model has both sparse and dense variables
  bool links = false;    // there are several hosts, so that the wire matters

  bool names_strategy() const { return !strategy.name.empty(); }
};

/// Returns one process first; if workers have several devices, one process with 1, 2, 4 … of them.
/// Then follow all strategies with 1, 2 and 4 parameter servers and 1, 2, 4 … workers. Local steps
/// are among them only if there are links, or if the user asked for them, because a local step
/// learns less.
std::vector<JobShape> shapes_to_try(const ShapesAsked& asked);

}  // namespace paceline
