// The element-wise steps of a rule of one's own on the vectors of the cpu kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "graph/rule_program.h"
#include "kernels/cpu/vector_math.h"

namespace paceline {

/// Computes an element step, no matrix step, for n elements; y may be one of the operands. Operands
/// that the step does not have are not read.
void compute_rule_step(const RuleProgram& program, std::size_t step,
                       const std::array<VectorOperand, 3>& operands, float* y, std::int64_t n);

}  // namespace paceline
