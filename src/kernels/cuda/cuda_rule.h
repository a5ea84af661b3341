// CUDA source of update rules.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "graph/rule_program.h"
#include "kernels/rule_kernel.h"
#include "paceline/rule.h"

namespace paceline {

/// Source of a kernel "apply_rule", which applies a rule that changes each element by itself to the
/// n elements of a float32 variable. Its parameters are the values, the gradient, each slot that is
/// as large as the variable, the moving average (null if there is none), a CudaRuleNumbers, and n
/// (64 bits). The kernel does not look for a gradient that is not finite
/// (RuleStep::must_be_finite): its caller refuses such a gradient. Not for a rule of the whole
/// variable, or of code.
std::string rule_source(const Rule& rule);

/// The numbers of one contribution. The kernels' source declares the same struct.
struct CudaRuleNumbers {
  static constexpr std::size_t kScalars = RuleProgram::kScalarInputs + CustomRule::kMostSteps;

  float clip_scale, weight_decay, average_decay;
  float rate, a, b, c, keep;  // as in RuleNumbers
  std::int64_t nesterov;
  std::array<float, kScalars> scalars;  // of a rule's program
};
CudaRuleNumbers cuda_rule_numbers(const Rule& rule, const RuleStep& step);

}  // namespace paceline
