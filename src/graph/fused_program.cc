#include "graph/fused_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "paceline/error.h"

namespace paceline {
namespace {

// The last number counts the operations per element. A transcendental function counts as the
// operations of its polynomials, 10 to 30.
constexpr auto kFusableOps = std::to_array<FusableOp>({
    {"add", 2, "", 1},
    {"sub", 2, "", 1},
    {"mul", 2, "", 1},
    {"div", 2, "", 1},
    {"scale", 1, "factor", 1},
    {"relu", 1, "", 1},
    {"leaky_relu", 1, "slope", 2},
    {"sigmoid", 1, "", 12},
    {"tanh", 1, "", 12},
    {"exp", 1, "", 10},
    {"log", 1, "", 10},
    {"sqrt", 1, "", 1},
    {"square", 1, "", 1},
    {"abs", 1, "", 1},
    {"sign", 1, "", 2},
    {"erf", 1, "", 24},
    {"maximum", 2, "", 1},
    {"minimum", 2, "", 1},
    {"pow", 2, "", 30},
    {"greater", 2, "", 1},
    {"greater_equal", 2, "", 1},
    {"equal", 2, "", 1},
    {"where", 3, "", 1},
    {"relu_grad", 2, "", 1},
    {"leaky_relu_grad", 2, "slope", 2},
    {"sigmoid_grad", 2, "", 3},
    {"tanh_grad", 2, "", 3},
});

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

[[noreturn]] void reject(std::string_view line, std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[fused_elementwise] bad step '{}': {}", line, why));
}

template <typename Number>
bool read(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

std::span<const FusableOp> fusable_ops() { return kFusableOps; }

const FusableOp* find_fusable_op(std::string_view name) {
  const auto* op = std::ranges::find(kFusableOps, name, &FusableOp::name);
  return op == kFusableOps.end() ? nullptr : op;
}

std::string format_fused_operand(const FusedOperand& operand) {
  const char kind = operand.kind == FusedOperand::Kind::kInput ? 'i' : 't';
  return fmt::format("{}{}", kind, operand.index);
}

FusedOperand parse_fused_operand(std::string_view line, std::string_view word, std::size_t before) {
  FusedOperand operand;
  if (!read(word.substr(1), operand.index) || operand.index < 0) reject(line, "bad operand");
  if (word[0] == 'i') return operand;
  operand.kind = FusedOperand::Kind::kStep;
  if (word[0] != 't') reject(line, "an operand begins with i or t");
  if (std::size_t(operand.index) >= before) reject(line, "it reads a step that has not been");
  return operand;
}

std::string format_fused_step(const FusedStep& step) {
  std::string text = step.op;
  for (const FusedOperand& operand : step.operands) text += " " + format_fused_operand(operand);
  const FusableOp* op = find_fusable_op(step.op);
  if (op != nullptr && !op->number.empty()) text += fmt::format(" {:.17g}", step.number);
  return text;
}

FusedStep parse_fused_step(std::string_view line, std::size_t before) {
  const std::vector<std::string_view> words = split(line, ' ');
  const FusableOp* op = words.empty() ? nullptr : find_fusable_op(words[0]);
  if (op == nullptr) reject(line, "unknown op");
  const std::size_t operands = std::size_t(op->operands);
  if (words.size() != 1 + operands + (op->number.empty() ? 0 : 1)) reject(line, "wrong length");
  FusedStep step{std::string(op->name), {}, 0};
  for (std::size_t i = 1; i <= operands; ++i) {
    step.operands.push_back(parse_fused_operand(line, words[i], before));
  }
  if (!op->number.empty() && !read(words.back(), step.number)) reject(line, "bad number");
  return step;
}

std::string format_fused_program(std::span<const FusedStep> steps) {
  std::string text;
  for (const FusedStep& step : steps) text += format_fused_step(step) + '\n';
  return text;
}

std::vector<FusedStep> parse_fused_program(std::string_view text) {
  std::vector<FusedStep> steps;
  for (std::string_view line : split(text, '\n')) {
    steps.push_back(parse_fused_step(line, steps.size()));
  }
  if (steps.empty()) reject("", "the program has no steps");
  return steps;
}

}  // namespace paceline
