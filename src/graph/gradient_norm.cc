#include "graph/gradient_norm.h"

#include <vector>

namespace paceline {

Value norm_of_gradients(std::span<const VariableUpdate> updates) {
  std::vector<Value> parts;
  for (const VariableUpdate& update : updates) {
    if (!update.rule.takes_gradient()) continue;
    const Gradient& contribution = update.contribution;
    parts.push_back(contribution.sparse() ? contribution.rows : contribution.dense);
  }
  if (parts.empty()) return {};
  return parts[0].graph().add("global_norm", parts).output(0);
}

void skip_not_finite(Training& training) {
  if (!training.global_norm) training.global_norm = norm_of_gradients(training.updates);
  training.skip_not_finite = bool(training.global_norm);
}

}  // namespace paceline
