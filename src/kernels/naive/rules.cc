#include "kernels/naive/rules.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/fused_step.h"
#include "kernels/rule_scalars.h"

namespace paceline {
namespace {

// One element: its value, its first two slots (unused ones are zero), and its gradient.
struct Element {
  double w, s0, s1, g;
};

using Numbers = std::array<float, Rule::kNumbers>;

void sgd(Element& e, double lr) { e.w -= lr * e.g; }

void momentum(Element& e, double lr, const Numbers& n) {
  const bool nesterov = n[1] != 0;
  e.s0 = n[0] * e.s0 + e.g;
  e.w -= lr * (nesterov ? e.g + n[0] * e.s0 : e.s0);
}

void delayed_nesterov(Element& e, double lr, const Numbers& n, std::int64_t t) {
  const double momentum = n[0], g = e.g / n[1];
  e.s1 += g;
  e.w -= lr * g;
  if (t % std::int64_t(n[1]) != 0) return;
  e.s0 = momentum * e.s0 + e.s1;
  e.s1 = 0;
  e.w -= lr * momentum * e.s0;
}

void adam(Element& e, double lr, const Numbers& n, std::int64_t t) {
  const double beta1 = n[0], beta2 = n[1], epsilon = n[2];
  e.s0 = beta1 * e.s0 + (1 - beta1) * e.g;
  e.s1 = beta2 * e.s1 + (1 - beta2) * e.g * e.g;
  const double rate = lr * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
  e.w -= rate * e.s0 / (std::sqrt(e.s1) + epsilon);
}

void adamw(Element& e, double lr, const Numbers& n, std::int64_t t) {
  e.w *= 1 - lr * n[3];
  adam(e, lr, n, t);
}

void adagrad(Element& e, double lr, const Numbers& n) {
  e.s0 += e.g * e.g;
  e.w -= lr * e.g / (std::sqrt(e.s0) + n[1]);
}

void rmsprop(Element& e, double lr, const Numbers& n) {
  e.s0 = n[0] * e.s0 + (1 - double(n[0])) * e.g * e.g;
  e.s1 = n[1] * e.s1 + lr * e.g / std::sqrt(e.s0 + n[2]);
  e.w -= e.s1;
}

void ftrl(Element& e, double lr, const Numbers& n) {
  if (lr == 0) return;
  const double l1 = n[0], l2 = n[1];
  const double squares = e.s0 + e.g * e.g;
  const double sigma = (std::sqrt(squares) - std::sqrt(e.s0)) / lr;
  e.s1 += e.g - sigma * e.w;
  e.s0 = squares;
  const double shrunk = e.s1 > l1 ? e.s1 - l1 : e.s1 < -l1 ? e.s1 + l1 : 0;
  e.w = shrunk == 0 ? 0 : -shrunk / (std::sqrt(squares) / lr + l2);
}

// Applies a user's rule to element i. The rule may have any number of slots, so it does not use the
// struct Element.
void apply_program(const RuleProgram& program, const RuleStep& step, const RuleRange& range,
                   std::size_t i) {
  const RuleScalars scalars = rule_scalars(program, step);
  std::vector<double> inputs = {range.values[i], step.clip_scale * double(range.gradient[i]) +
                                                     step.weight_decay * double(range.values[i])};
  for (std::size_t s = 0; s < program.slots.size(); ++s) inputs.push_back(range.slots[s][i]);
  inputs.insert(inputs.end(), scalars.begin(),
                scalars.begin() + std::ptrdiff_t(program.scalar_count()));
  std::vector<double> results;
  const auto at = [&](const FusedOperand& operand) {
    return (operand.kind == FusedOperand::Kind::kInput ? inputs
                                                       : results)[std::size_t(operand.index)];
  };
  for (const FusedStep& each : program.element_steps) {
    const auto operand = [&](std::size_t k) {
      return at(each.operands[std::min(k, each.operands.size() - 1)]);
    };
    results.push_back(fused_step(each, operand(0), operand(1), operand(2)));
  }
  range.values[i] = float(at(program.results[0]));
  for (std::size_t s = 0; s < program.slots.size(); ++s) {
    range.slots[s][i] = float(at(program.results[1 + s]));
  }
}

void update(Element& e, const Rule& rule, const RuleStep& step) {
  const Numbers& n = rule.numbers();
  const double lr = step.learning_rate;
  switch (rule.kind()) {
    case RuleKind::kEma:
      e.w = n[0] * e.w + (1 - double(n[0])) * e.g;
      return;
    case RuleKind::kAdd:
      e.w += e.g;
      return;
    case RuleKind::kAssign:
      e.w = e.g;
      return;
    default:
      break;
  }
  e.g = step.clip_scale * e.g + step.weight_decay * e.w;
  switch (rule.kind()) {
    case RuleKind::kSgd:
      return sgd(e, lr);
    case RuleKind::kMomentum:
      return momentum(e, lr, n);
    case RuleKind::kAdam:
      return adam(e, lr, n, step.count);
    case RuleKind::kAdamW:
      return adamw(e, lr, n, step.count);
    case RuleKind::kAdagrad:
      return adagrad(e, lr, n);
    case RuleKind::kRmsprop:
      return rmsprop(e, lr, n);
    case RuleKind::kFtrl:
      return ftrl(e, lr, n);
    case RuleKind::kDelayedNesterov:
      return delayed_nesterov(e, lr, n, step.count);
    default:
      PACELINE_CHECK(false);
  }
}

void apply_kind(const Rule& rule, const RuleStep& step, const RuleRange& range, std::size_t i) {
  const auto slot = [&](std::size_t s) {
    return s < range.slots.size() ? double(range.slots[s][i]) : 0.0;
  };
  Element e{range.values[i], slot(0), slot(1), range.gradient[i]};
  update(e, rule, step);
  range.values[i] = float(e.w);
  if (!range.slots.empty()) range.slots[0][i] = float(e.s0);
  if (range.slots.size() > 1) range.slots[1][i] = float(e.s1);
}

}  // namespace

void apply_rule_naively(const Rule& rule, const RuleStep& step, const RuleRange& range) {
  for (std::size_t i = 0; i < range.values.size(); ++i) {
    if (rule.program() != nullptr) {
      apply_program(*rule.program(), step, range, i);
    } else {
      apply_kind(rule, step, range, i);
    }
    if (step.average_decay > 0) {
      float& average = range.slots.back()[i];
      average = float(step.average_decay * double(average) +
                      (1 - double(step.average_decay)) * range.values[i]);
    }
  }
}

}  // namespace paceline
