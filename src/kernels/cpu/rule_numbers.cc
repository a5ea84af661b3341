#include "kernels/cpu/rule_numbers.h"

#include <cmath>

namespace paceline {
namespace {

// Adam's correction of its moments is one factor on the rate, equal for all elements.
float corrected_rate(const Rule& rule, const RuleStep& step) {
  const bool corrects = rule.kind() == RuleKind::kAdam || rule.kind() == RuleKind::kAdamW;
  if (!corrects) return step.learning_rate;
  const double t = double(step.count);
  const double beta1 = rule.numbers()[0], beta2 = rule.numbers()[1];
  return float(step.learning_rate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t)));
}

bool renews_momentum(const Rule& rule, const RuleStep& step) {
  return rule.kind() == RuleKind::kDelayedNesterov &&
         step.count % std::int64_t(rule.numbers()[1]) == 0;
}

}  // namespace

RuleNumbers rule_numbers(const Rule& rule, const RuleStep& step) {
  const auto& n = rule.numbers();
  return {step.clip_scale,
          step.weight_decay,
          corrected_rate(rule, step),
          n[0],
          n[1],
          n[2],
          (rule.kind() == RuleKind::kMomentum && n[1] != 0) || renews_momentum(rule, step),
          step.average_decay,
          rule.kind() == RuleKind::kAdamW ? float(1 - double(step.learning_rate) * n[3]) : 1.0f,
          step.must_be_finite};
}

}  // namespace paceline
