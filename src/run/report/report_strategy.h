// The traits of the strategy by which a report's run was trained.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "params/strategy/strategy_kind.h"
#include "run/report/report.h"

namespace paceline {

/// Null: this version does not know it.
const StrategyKind* strategy_kind(const Report& run);

/// True when no worker made more steps than another: a step of each is one global step.
bool in_rounds(const Report& run);

/// The flags of a way to distribute (ExpectedSpeed::way), each with its value.
std::vector<std::pair<std::string, std::string>> flags_in(const std::string& way);
/// The kind of strategy by which a way trains; null: this version does not know it.
const StrategyKind* strategy_kind_of_way(const std::string& way);

}  // namespace paceline
