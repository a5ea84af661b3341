// The traits of the strategy by which a report's run was trained.
#pragma once

#include "params/strategy/strategy_kind.h"
#include "run/report/report.h"

namespace paceline {

/// Null: this version does not know it.
const StrategyKind* strategy_kind(const Report& run);

/// True when no worker made more steps than another: a step of each is one global step.
bool in_rounds(const Report& run);

}  // namespace paceline
