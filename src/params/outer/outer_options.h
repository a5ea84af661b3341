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
  /// later, and keeps the steps that it made meanwhile. If there is only one part, the worker waits
  /// for the new values.
  int fragments = 1;
  /// 0: the store below has rounds. Otherwise each difference is applied as it arrives: `delay`
  /// differences count as one mean, and every `delay`-th difference renews the momentum and applies
  /// it.
  int delay = 0;
  bool operator==(const OuterOptions&) const = default;
};

/// Returns the variables for the store below. Contributions to that store are differences, which
/// are dense, and the outer rule, Nesterov's momentum, applies them. Variables that a rule does not
/// learn by gradients (moving statistics) are averaged.
std::vector<VariableSpec> outer_variables(std::vector<VariableSpec> variables,
                                          const OuterOptions& how);

/// Returns the schedule by which a worker exchanges its variables.
OuterSchedule outer_schedule_of(std::span<const VariableSpec> variables, const OuterOptions& how);

/// Returns the default number of fragments. With a ps it is two: the values of one fragment then
/// have all the steps between two exchanges to return; with more fragments they would have less
/// time. With few steps it is one. It is one in an all-reduce, too, since there a worker waits for
/// its reductions.
int usual_fragments(std::int64_t local_steps, bool with_ps);

/// Returns the strategy's options. If the strategy has 0 fragments, the result has
/// usual_fragments(). With outer_async, `delay` is the number of workers.
OuterOptions outer_options_of(const Strategy& strategy, bool with_ps, int workers);

}  // namespace paceline
