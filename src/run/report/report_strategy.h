// The traits of the strategy by which the run of a report was trained.
#pragma once

#include "params/strategy/strategy_kind.h"
#include "run/report/report.h"

namespace paceline {

/// Returns the traits of the run's strategy; null if this version does not know the strategy.
const StrategyKind* strategy_kind(const Report& run);

/// True if the strategy is known and no worker makes more steps than another, so that one step of
/// each worker is one global step.
bool in_rounds(const Report& run);

}  // namespace paceline
