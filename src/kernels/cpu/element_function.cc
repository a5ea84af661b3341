#include "kernels/cpu/element_function.h"

#include <algorithm>
#include <vector>

#include "graph/fused_program.h"

namespace paceline {

ElementFunction element_function(std::string_view op) {
  return {unary_function(op), binary_function(op)};
}

const ElementFunction& element_function_at(std::size_t place) {
  static const std::vector<ElementFunction> all = [] {
    std::vector<ElementFunction> made;
    for (const FusableOp& each : fusable_ops()) {
      made.push_back(element_function(each.name));
    }
    return made;
  }();
  return all[place];
}

void compute_elements(const ElementFunction& function, float number,
                      const std::array<VectorOperand, 3>& operands, float* y, std::int64_t n) {
  const auto& [a, b, c] = operands;
  if (function.binary) return vector_binary(*function.binary, number, a, b, y, n);
  if (!function.unary) return vector_where(a, b, c, y, n);
  if (!a.repeats) return vector_unary(*function.unary, number, a.data, y, n);
  vector_unary(*function.unary, number, a.data, y, 1);
  std::fill(y + 1, y + n, *y);
}

}  // namespace paceline
