// The shapes of a job that are compared: ways to distribute it.
#pragma once

#include <optional>
#include <vector>

#include "predict/prediction.h"

namespace paceline {

/// The parts of a job that the user has fixed; the rest is tried.
struct ShapesAsked {
  Strategy strategy = {};  // without a name: any of them, with these options
  std::optional<int> ps, workers;
  std::optional<WireForm> wire;
  int accumulate = 1;
  int most_workers = 8;  // that fit
  int towers = 1;        // devices of each worker
  bool sparse = false;   // the model has sparse variables and dense ones
  bool links = false;    // there are several hosts, so that the wire matters

  bool names_strategy() const { return !strategy.name.empty(); }
};

/// One process first, with several devices where workers have several: 1, 2, 4 … of them. Then
/// every strategy with 1, 2 and 4 parameter servers, and 1, 2, 4 … workers.
/// Local steps only where there are links, or where they are asked for: they learn less each.
std::vector<JobShape> shapes_to_try(const ShapesAsked& asked);

}  // namespace paceline
