#include "kernels/cuda/cuda_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/rule_numbers.h"
#include "kernels/cuda/cuda_source.h"
#include "kernels/cuda/cuda_work.h"
#include "kernels/rule_scalars.h"

namespace paceline {
namespace {

// Changes a value w and its slots s0 and s1 by a gradient g, in the arithmetic of
// kernels/cpu/rule_bodies-inl.h.
const char* body_of(RuleKind kind) {
  switch (kind) {
    case RuleKind::kSgd:
      return "w -= n.rate * g;";
    case RuleKind::kMomentum:
      return "s0 = n.a * s0 + g;\n"
             "    w -= n.rate * (n.nesterov ? n.a * s0 + g : s0);";
    case RuleKind::kDelayedNesterov:
      return "float change = 1.0f / n.b * g;\n"
             "    s1 += change;\n"
             "    if (n.nesterov) {\n"
             "      s0 = n.a * s0 + s1;\n"
             "      s1 = 0;\n"
             "      change = n.a * s0 + change;\n"
             "    }\n"
             "    w -= n.rate * change;";
    case RuleKind::kAdam:
    case RuleKind::kAdamW:
      return "w *= n.keep;\n"
             "    s0 = n.a * s0 + (1.0f - n.a) * g;\n"
             "    s1 = n.b * s1 + (1.0f - n.b) * (g * g);\n"
             "    w -= n.rate * s0 / (sqrtf(s1) + n.c);";
    case RuleKind::kAdagrad:
      return "s0 += g * g;\n"
             "    w -= n.rate * g / (sqrtf(s0) + n.b);";
    case RuleKind::kRmsprop:
      return "s0 = n.a * s0 + (1.0f - n.a) * (g * g);\n"
             "    s1 = n.b * s1 + n.rate * g / sqrtf(s0 + n.c);\n"
             "    w -= s1;";
    case RuleKind::kFtrl:
      // A rate that is 0 or a denormal leaves all as it is, since its inverse could overflow.
      return "if (fabsf(n.rate) >= 1.17549435e-38f) {\n"
             "      const float before = sqrtf(s0);\n"
             "      s0 += g * g;\n"
             "      const float root = sqrtf(s0);\n"
             "      s1 += g - (root - before) / n.rate * w;\n"
             "      const float shrunk = fabsf(s1) - n.a, moved = shrunk / (root / n.rate + n.b);\n"
             "      w = shrunk > 0.0f ? (s1 > 0.0f ? -moved : moved) : 0.0f;\n"
             "    }";
    case RuleKind::kEma:
      return "w = n.a * w + (1.0f - n.a) * g;";
    case RuleKind::kAdd:
      return "w += g;";
    case RuleKind::kAssign:
      return "w = g;";
    case RuleKind::kCustom:
      break;  // body_of_program
  }
  return "";
}

// Returns the name of an input of element steps.
std::string input_name(const RuleProgram& program, int input) {
  if (input == RuleProgram::kValue) return "w";
  if (input == RuleProgram::kGradient) return "g";
  const int scalar = input - program.scalar_input(0);
  return scalar < 0 ? fmt::format("s{}", input - RuleProgram::kFirstSlot)
                    : fmt::format("n.scalars[{}]", scalar);
}

std::string body_of_program(const RuleProgram& program) {
  const auto name = [&](const FusedOperand& operand) {
    return operand.kind == FusedOperand::Kind::kStep ? fmt::format("t{}", operand.index)
                                                     : input_name(program, operand.index);
  };
  std::string body;
  for (std::size_t j = 0; j < program.element_steps.size(); ++j) {
    const FusedStep& step = program.element_steps[j];
    std::array<std::string, 3> operands;
    std::ranges::transform(step.operands, operands.begin(), name);
    body += fmt::format("const float t{} = {};\n    ", j, step_expression(step, operands));
  }
  for (std::size_t i = 0; i < program.results.size(); ++i) {
    const FusedOperand& result = program.results[i];
    if (result.kind == FusedOperand::Kind::kInput) continue;  // stays as it is
    body += fmt::format("{} = {};\n    ", name(RuleProgram::replaced(i)), name(result));
  }
  return body;
}

// {0} is the number of scalars; {1}, {2} and {3} declare, read and write the slots; {4} scales the
// gradient, and {5} is the rule.
constexpr const char* kKernel = R"(
struct Numbers {{
  float clip_scale, weight_decay, average_decay, rate, a, b, c, keep;
  i64 nesterov;
  float scalars[{0}];
}};
extern "C" __global__ void apply_rule(float* values, const float* gradient, {1}float* average,
                                      Numbers n, i64 elements) {{
  EACH(i, elements) {{
    float w = values[i], g = gradient[i];{2}
    {4}
    {5}
    values[i] = w;{3}
    if (average) average[i] = n.average_decay * average[i] + (1.0f - n.average_decay) * w;
  }}
}}
)";

}  // namespace

std::string rule_source(const Rule& rule) {
  PACELINE_CHECK(!rule.whole() && !rule.by_code());
  std::string declared, read, written;
  std::size_t count = 0;
  for (const SlotSpec& slot : rule.slots()) {
    if (slot.scalar) continue;
    declared += fmt::format("float* slot{}, ", count);
    read += fmt::format("\n    float s{0} = slot{0}[i];", count);
    written += fmt::format("\n    slot{0}[i] = s{0};", count);
    ++count;
  }
  const RuleProgram* const program = rule.program();
  return cuda::kPrelude +
         fmt::format(kKernel, CudaRuleNumbers::kScalars, declared, read, written,
                     rule.takes_gradient() ? "g = n.clip_scale * g + n.weight_decay * w;" : "",
                     program != nullptr ? body_of_program(*program) : body_of(rule.kind()));
}

CudaRuleNumbers cuda_rule_numbers(const Rule& rule, const RuleStep& step) {
  const RuleNumbers n = rule_numbers(rule, step);
  CudaRuleNumbers numbers{step.clip_scale,
                          step.weight_decay,
                          step.average_decay,
                          n.rate,
                          n.a,
                          n.b,
                          n.c,
                          n.keep,
                          n.nesterov ? 1 : 0,
                          {}};
  if (rule.program() == nullptr) return numbers;
  const RuleScalars scalars = rule_scalars(*rule.program(), step);
  std::ranges::transform(scalars.begin(),
                         scalars.begin() + std::ptrdiff_t(rule.program()->scalar_count()),
                         numbers.scalars.begin(), [](double scalar) { return float(scalar); });
  return numbers;
}

}  // namespace paceline
