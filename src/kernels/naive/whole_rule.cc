// Applies a rule that needs its whole variable, step by step, in float64.
#include <vector>

#include "graph/rule_program.h"
#include "kernels/fused_step.h"
#include "kernels/naive/rules.h"
#include "kernels/rule_scalars.h"

namespace paceline {
namespace {

using Extent = RuleProgram::Extent;

struct Matrix {
  Extent extent;
  std::vector<double> elements;
  /// Returns the element; if there is only one number, that number at every index.
  double at(std::int64_t i) const { return elements[elements.size() == 1 ? 0 : std::size_t(i)]; }
  double at(std::int64_t row, std::int64_t column, bool transposed) const {
    return at(transposed ? column * extent.columns + row : row * extent.columns + column);
  }
};

Matrix product(const Matrix& a, const Matrix& b, const FusedStep& step, const Extent& extent) {
  const bool of_a = RuleProgram::transposes(step, 0), of_b = RuleProgram::transposes(step, 1);
  const std::int64_t depth = of_a ? a.extent.rows : a.extent.columns;
  Matrix c{extent, {}};
  for (std::int64_t i = 0; i < extent.rows; ++i) {
    for (std::int64_t j = 0; j < extent.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += a.at(i, k, of_a) * b.at(k, j, of_b);
      c.elements.push_back(sum);
    }
  }
  return c;
}

Matrix result_of(const FusedStep& step, const std::vector<Matrix>& operands, const Extent& extent) {
  if (step.op == RuleProgram::kMatmul) return product(operands[0], operands[1], step, extent);
  if (step.op == RuleProgram::kSum) {
    double sum = 0;
    for (const double element : operands[0].elements) sum += element;
    return {extent, {sum}};
  }
  Matrix result{extent, {}};
  for (std::int64_t i = 0; i < extent.elements(); ++i) {
    const auto of = [&](std::size_t k) { return k < operands.size() ? operands[k].at(i) : 0.0; };
    result.elements.push_back(fused_step(step, of(0), of(1), of(2)));
  }
  return result;
}

}  // namespace

void apply_rule_to_whole_naively(const Rule& rule, const RuleStep& step, const RuleWhole& whole) {
  const RuleProgram& program = *rule.program();
  const Extent variable{whole.rows, whole.columns};
  const auto n = std::size_t(variable.elements());
  const auto matrix = [&](const float* from) { return Matrix{variable, {from, from + n}}; };
  std::vector<Matrix> inputs = {matrix(whole.values), matrix(whole.gradient)};
  for (std::size_t i = 0; i < n; ++i) {
    double& g = inputs[1].elements[i];
    g = step.clip_scale * g + step.weight_decay * inputs[0].elements[i];
  }
  for (std::size_t s = 0; s < program.slots.size(); ++s) inputs.push_back(matrix(whole.slots[s]));
  const RuleScalars scalars = rule_scalars(program, step);
  for (std::size_t i = 0; i < program.scalar_count(); ++i) inputs.push_back({{}, {scalars[i]}});
  const std::vector<Extent> extents = program.step_extents(variable);
  std::vector<Matrix> steps;
  const auto find = [&](const FusedOperand& operand) {
    const bool of_step = operand.kind == FusedOperand::Kind::kStep;
    return (of_step ? steps : inputs)[std::size_t(operand.index)];
  };
  for (std::size_t j = 0; j < extents.size(); ++j) {
    std::vector<Matrix> operands;
    for (const FusedOperand& each : program.element_steps[j].operands) {
      operands.push_back(find(each));
    }
    steps.push_back(result_of(program.element_steps[j], operands, extents[j]));
  }
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    const Matrix result = find(program.results[r]);
    float* const to = r == 0 ? whole.values : whole.slots[r - 1];
    for (std::size_t i = 0; i < n; ++i) to[i] = float(result.elements[i]);
  }
  if (step.average_decay <= 0) return;
  const double decay = step.average_decay;
  for (std::size_t i = 0; i < n; ++i) {
    float& average = whole.slots.back()[i];
    average = float(decay * double(average) + (1 - decay) * double(whole.values[i]));
  }
}

}  // namespace paceline
