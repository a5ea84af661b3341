// The traits of the strategy by which the run of a report was trained.
#pragma once

#include "params/strategy/strategy_kind.h"
#include "run/report/report.h"

namespace paceline {

/// Null: this version does not know it.
const StrategyKind* strategy_kind(const Report& run);

/// True if no worker makes more steps than another, so that one step of each is one global step.
bool in_rounds(const Report& run);

}  // namespace paceline
