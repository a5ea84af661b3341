// Computes the fusable ops on vectors, for the cpu kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/cpu/vector_math.h"

namespace paceline {

/// The function that computes a fusable op: unary or binary. `where` has neither.
struct ElementFunction {
  std::optional<UnaryFunction> unary = {};
  std::optional<BinaryFunction> binary = {};
};

ElementFunction element_function(std::string_view op);
/// Returns the function of the op at this position in fusable_ops(), without a search by name.
const ElementFunction& element_function_at(std::size_t place);

/// Computes n > 0 elements; y may be one of the operands. Does not read operands that the function
/// does not take. `number` is the op's attribute, if the op has one.
void compute_elements(const ElementFunction& function, float number,
                      const std::array<VectorOperand, 3>& operands, float* y, std::int64_t n);

}  // namespace paceline
