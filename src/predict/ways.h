// The ways to distribute that are compared.
#pragma once

#include <optional>
#include <vector>

#include "predict/forecast.h"

namespace paceline {

/// What the user has fixed; the rest is tried.
struct WaysAsked {
  std::optional<std::string> strategy;
  std::optional<int> ps, workers;
  std::optional<WireForm> wire;
  int accumulate = 1;
  std::int64_t staleness = 0;
  int replicas = 0;
  LateContribution late = LateContribution::kDrop;
  OuterOptions outer = {.fragments = 0};  // of local steps; 0: as many as are usual
  bool outer_async = false;               // their outer rule has no rounds
  int most_workers = 8;                   // that fit
  int towers = 1;                         // devices of each worker
  bool sparse = false;                    // the model has sparse variables and dense ones
  bool links = false;                     // there are several hosts, so that the wire matters
};

/// One process first, with several devices where workers have several: 1, 2, 4 … of them. Then
/// every strategy with 1, 2 and 4 parameter servers, and 1, 2, 4 … workers.
/// Local steps only where there are links, or where they are asked for: they learn less each.
std::vector<Way> ways_to_try(const WaysAsked& asked);

}  // namespace paceline
