#include "kernels/cpu/rule_program_pass.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cpu/rule_step.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/rule_scalars.h"

namespace paceline {
namespace {

constexpr std::size_t kElements = 512;  // of a block

// sum[i] = of_a·a[i] + of_b·b[i]. The sum may be a.
void blend(float of_a, const float* a, float of_b, const float* b, float* sum, std::int64_t n) {
  std::array<float, kElements> scaled;
  vector_unary(UnaryFunction::kScale, of_b, b, scaled.data(), n);
  vector_unary(UnaryFunction::kScale, of_a, a, sum, n);
  vector_binary(BinaryFunction::kAdd, 0, {sum, false}, {scaled.data(), false}, sum, n);
}

}  // namespace

struct RuleProgramPass::Block {
  float* values;
  std::array<float*, CustomRule::kMostSlots + 1> slots;
  std::size_t slot_count;
  const float* gradient;
  std::int64_t n;
};

RuleProgramPass::RuleProgramPass(const RuleProgram& program, const RuleStep& step)
    : program_(program), step_(step) {
  const RuleScalars scalars = rule_scalars(program, step);
  std::ranges::transform(scalars.begin(), scalars.begin() + std::ptrdiff_t(program.scalar_count()),
                         scalars_.begin(), [](double scalar) { return float(scalar); });
}

void RuleProgramPass::run(float* values, std::span<float* const> slots, const float* gradient,
                          std::size_t n) const {
  Block block{
      .values = values, .slots = {}, .slot_count = slots.size(), .gradient = nullptr, .n = 0};
  std::array<float, kElements> scaled;
  const bool scales = step_.clip_scale != 1 || step_.weight_decay != 0;
  for (std::size_t begin = 0; begin < n; begin += kElements) {
    block.n = std::int64_t(std::min(kElements, n - begin));
    block.values = values + begin;
    for (std::size_t i = 0; i < slots.size(); ++i) block.slots[i] = slots[i] + begin;
    block.gradient = gradient + begin;
    if (scales) {
      blend(step_.clip_scale, block.gradient, step_.weight_decay, block.values, scaled.data(),
            block.n);
      block.gradient = scaled.data();
    }
    run_block(block);
  }
}

void RuleProgramPass::run_block(const Block& block) const {
  std::array<std::array<float, kElements>, RuleProgram::kMostBuffers> results;
  const auto result_of = [&](int step) {
    return results[std::size_t(program_.buffers[std::size_t(step)])].data();
  };
  const auto read = [&](const FusedOperand& operand) -> VectorOperand {
    if (operand.kind == FusedOperand::Kind::kStep) return {result_of(operand.index), false};
    if (operand.index == RuleProgram::kValue) return {block.values, false};
    if (operand.index == RuleProgram::kGradient) return {block.gradient, false};
    const std::size_t slot = std::size_t(operand.index) - RuleProgram::kFirstSlot;
    const std::size_t slots = program_.slots.size();
    if (slot < slots) return {block.slots[slot], false};
    return {&scalars_[slot - slots], true};
  };
  for (std::size_t j = 0; j < program_.element_steps.size(); ++j) {
    const FusedStep& step = program_.element_steps[j];
    std::array<VectorOperand, 3> operands;
    for (std::size_t k = 0; k < step.operands.size(); ++k) operands[k] = read(step.operands[k]);
    compute_rule_step(program_, j, operands, result_of(int(j)), block.n);
  }
  for (std::size_t i = 0; i < program_.results.size(); ++i) {
    const FusedOperand& result = program_.results[i];
    if (result.kind == FusedOperand::Kind::kInput) continue;
    std::copy_n(result_of(result.index), block.n, i == 0 ? block.values : block.slots[i - 1]);
  }
  if (step_.average_decay <= 0) return;
  float* const average = block.slots[block.slot_count - 1];
  blend(step_.average_decay, average, 1 - step_.average_decay, block.values, average, block.n);
}

}  // namespace paceline
