// How workers make local steps, and what follows for their variables. Arithmetic only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "paceline/strategy.h"
#include "params/protocol/outer_schedule.h"

namespace paceline {

struct OuterOptions {
  std::int64_t local_steps = 20;  // between two exchanges of a variable
  float rate = 0.7f, momentum = 0.5f;
  /// The variables are exchanged in this many parts, one after the other, so that a link always has
  /// something to send (arXiv 2501.18512). A worker takes over the values of a round one round
  /// later, and keeps the steps that it made meanwhile. With one part a worker waits.
  int fragments = 1;
  /// 0: the store below has rounds. Otherwise each difference is applied as it arrives. `delay` of
  /// them are one mean, and every `delay`-th one brings the momentum.
  int delay = 0;
  bool operator==(const OuterOptions&) const = default;
};

/// The variables as the store below knows them. The outer rule, Nesterov's momentum, applies dense
/// differences. Variables that a rule does not learn by gradients (moving statistics) are averaged.
std::vector<VariableSpec> outer_variables(std::vector<VariableSpec> variables,
                                          const OuterOptions& how);

/// When a worker exchanges which variables.
OuterSchedule outer_schedule_of(std::span<const VariableSpec> variables, const OuterOptions& how);

/// Two with a ps: the values of one then have all the steps between two exchanges to return, and
/// more parts would leave them less time. One if there are few steps, and in an all-reduce, for
/// whose reductions a worker waits.
int usual_fragments(std::int64_t local_steps, bool with_ps);

/// Returns the strategy's options, or the default ones, for this many workers with or without
/// parameter servers.
OuterOptions outer_options_of(const Strategy& strategy, bool with_ps, int workers);

}  // namespace paceline
