#include "kernels/cpu/rule_step.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace paceline {
namespace {

/// The function of a fusable op. `where` is neither.
struct StepFunction {
  std::optional<UnaryFunction> unary;
  std::optional<BinaryFunction> binary;
};

// In the order of fusable_ops().
const std::vector<StepFunction>& functions() {
  static const std::vector<StepFunction> all = [] {
    std::vector<StepFunction> made;
    for (const FusableOp& op : fusable_ops()) {
      made.push_back({unary_function(op.name), binary_function(op.name)});
    }
    return made;
  }();
  return all;
}

}  // namespace

void compute_rule_step(const RuleProgram& program, std::size_t step,
                       const std::array<VectorOperand, 3>& operands, float* y, std::int64_t n) {
  const StepFunction& function = functions()[program.element_ops[step]];
  const float number = float(program.element_steps[step].number);
  const auto& [a, b, c] = operands;
  if (function.binary) return vector_binary(*function.binary, number, a, b, y, n);
  if (!function.unary) return vector_where(a, b, c, y, n);
  if (!a.repeats) return vector_unary(*function.unary, number, a.data, y, n);
  vector_unary(*function.unary, number, a.data, y, 1);
  std::fill(y + 1, y + n, *y);
}

}  // namespace paceline
