#include "params/outer/outer_options.h"

#include <algorithm>

namespace paceline {

std::vector<VariableSpec> outer_variables(std::vector<VariableSpec> variables,
                                          const OuterOptions& how) {
  for (VariableSpec& variable : variables) {
    const bool learns = variable.rule.takes_gradient();
    variable.weight_decay = 0;
    variable.sparse = false;
    const float share = 1.0f / float(std::max(how.delay, 1));
    if (!learns) {
      variable.rule = Sgd{share};
    } else if (how.momentum == 0) {
      variable.rule = Sgd{how.rate * share};
    } else if (how.delay > 0) {
      variable.rule =
          DelayedNesterov{.learning_rate = how.rate, .momentum = how.momentum, .period = how.delay};
    } else {
      variable.rule =
          Momentum{.learning_rate = how.rate, .momentum = how.momentum, .nesterov = true};
    }
  }
  return variables;
}

OuterSchedule outer_schedule_of(std::span<const VariableSpec> variables, const OuterOptions& how) {
  std::vector<std::int64_t> bytes;
  for (const VariableSpec& variable : variables) {
    const std::int64_t size = variable.shape.elements() * std::int64_t(size_of(variable.dtype));
    bytes.push_back(variable.trained ? size : 0);
  }
  return {bytes, how.local_steps, how.fragments};
}

int usual_fragments(std::int64_t local_steps, bool with_ps) {
  constexpr std::int64_t kStepsOfFragment = 4;
  return with_ps && local_steps >= 2 * kStepsOfFragment ? 2 : 1;
}

OuterOptions outer_options_of(const Strategy& strategy, bool with_ps, int workers) {
  OuterOptions how{.local_steps = strategy.local_steps,
                   .rate = strategy.outer_rate,
                   .momentum = strategy.outer_momentum,
                   .fragments = strategy.outer_fragments};
  if (how.fragments == 0) how.fragments = usual_fragments(strategy.local_steps, with_ps);
  // With this delay the workers' changes count as much as in a round of all workers.
  if (strategy.outer_async) how.delay = workers;
  return how;
}

}  // namespace paceline
