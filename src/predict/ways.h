// The ways to distribute that are compared.
#pragma once

#include <optional>
#include <vector>

#include "predict/prediction.h"

namespace paceline {

/// What the user has fixed; the rest is tried.
struct WaysAsked {
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

/// A way to start a job, and the speed that is expected of it.
struct ComparedWay {
  Strategy strategy = {};
  int ps = 0, workers = 1;
  double steps_per_s = 0;
};

/// One process first, with several devices where workers have several: 1, 2, 4 … of them. Then
/// every strategy with 1, 2 and 4 parameter servers, and 1, 2, 4 … workers.
/// Local steps only where there are links, or where they are asked for: they learn less each.
std::vector<Way> ways_to_try(const WaysAsked& asked);

}  // namespace paceline
