// A strategy that Paceline does not have: the workers' copies are averaged every H steps, without
// momentum. This file is the whole strategy, except for the line that adds it to the table.
#pragma once

#include "params/outer/local_steps_strategy.h"
#include "params/strategy/strategy_kind.h"

namespace paceline {

constexpr StrategyKind kAveraging = {
    .name = "averaging",
    .meaning = "the workers' copies are averaged every H steps (--local-steps)",
    .cluster = ClusterKind::kWithPs,
    .rounds = true,
    .makes_local_steps = true,
    .fix =
        [](Strategy& options) {
          options.outer_rate = 1;
          options.outer_momentum = 0;
        },
    .make = make_local_steps_strategy};

}  // namespace paceline
