// The scalar steps of a user's rule, computed once for a contribution.
#pragma once

#include <algorithm>
#include <array>

#include "graph/rule_program.h"
#include "kernels/fused_step.h"
#include "kernels/rule_kernel.h"

namespace paceline {

/// The inputs of scalar steps, followed by their results: RuleProgram::scalar_count() numbers.
using RuleScalars = std::array<double, RuleProgram::kScalarInputs + CustomRule::kMostSteps>;

inline RuleScalars rule_scalars(const RuleProgram& program, const RuleStep& step) {
  RuleScalars scalars;
  scalars[RuleProgram::kLearningRate] = step.learning_rate;
  scalars[RuleProgram::kCount] = double(step.count);
  for (std::size_t j = 0; j < program.scalar_steps.size(); ++j) {
    const FusedStep& each = program.scalar_steps[j];
    const auto operand = [&](std::size_t k) {
      const FusedOperand& of = each.operands[std::min(k, each.operands.size() - 1)];
      const bool of_step = of.kind == FusedOperand::Kind::kStep;
      return scalars[std::size_t(of.index) +
                     (of_step ? std::size_t{RuleProgram::kScalarInputs} : 0)];
    };
    scalars[RuleProgram::kScalarInputs + j] =
        each.op == RuleProgram::kNumber ? each.number
                                        : fused_step(each, operand(0), operand(1), operand(2));
  }
  return scalars;
}

}  // namespace paceline
