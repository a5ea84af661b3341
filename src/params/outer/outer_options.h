// How workers make local steps, and what of it follows for their variables. Arithmetic alone.
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
  /// The variables are exchanged in so many parts, one after the other, so that a link has
  /// something to send all the time (arXiv 2501.18512). What a round brings is then taken over one
  /// round later, without the steps that were made meanwhile being lost. With one part a worker
  /// waits.
  int fragments = 1;
  /// 0: the store below has rounds. Otherwise each difference is applied as it arrives, so many of
  /// them are a mean, and every so manieth brings the momentum.
  int delay = 0;
  bool operator==(const OuterOptions&) const = default;
};

/// The variables as the store below knows them: the outer rule, Nesterov's momentum, applies dense
/// differences. What a rule does not learn by gradients (moving statistics) is averaged.
std::vector<VariableSpec> outer_variables(std::vector<VariableSpec> variables,
                                          const OuterOptions& how);

/// When a worker exchanges which of them.
OuterSchedule outer_schedule_of(std::span<const VariableSpec> variables, const OuterOptions& how);

/// Two with a ps: then the values of one have all the steps between two exchanges to come back, and
/// more would give them less. One where there are few steps, and in an all-reduce, for whose
/// reductions a worker waits.
int usual_fragments(std::int64_t local_steps, bool with_ps);

/// Returns the options that the strategy has, or else are usual, for so many workers with parameter
/// servers or without.
OuterOptions outer_options_of(const Strategy& strategy, bool with_ps, int workers);

}  // namespace paceline
