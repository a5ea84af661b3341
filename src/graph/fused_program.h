// The program of a fused_elementwise node: its attribute "program", one step a line, for example
//
//   add i0 i1
//   scale t0 0.5
//   relu t1
//
// ik is input k of the node, and tj the result of step j, an earlier step (counted from 0). Some
// ops take a number as their last word. The result of the last step is the output. An operand has
// the shape of the output, or exactly one element, which is used for every element of the output.
// All steps have the node's dtype.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

/// An op that may be a step of a fused program. The step computes the same as the graph's op of the
/// same name.
struct FusableOp {
  std::string_view name;
  int operands = 1;
  /// The attribute (a double) that is the step's number; empty if the op has none.
  std::string_view number;
  double flops = 1;  // for each element of the output
};

/// Returns all ops of fused programs: add, sub, mul, div, maximum, minimum, pow, greater,
/// greater_equal, equal; scale, relu, leaky_relu, sigmoid, tanh, exp, log, sqrt, square, abs, sign,
/// erf; where (condition, a, b); relu_grad (dy, y), leaky_relu_grad (dy, x), sigmoid_grad (dy, y),
/// tanh_grad (dy, y).
std::span<const FusableOp> fusable_ops();
/// Null when there is no such op.
const FusableOp* find_fusable_op(std::string_view name);

struct FusedOperand {
  enum class Kind : std::uint8_t { kInput, kStep };
  Kind kind = Kind::kInput;
  int index = 0;
  bool operator==(const FusedOperand&) const = default;
};

struct FusedStep {
  std::string op;
  std::vector<FusedOperand> operands;
  double number = 0;  // scale: the factor; leaky_relu, leaky_relu_grad: the slope
  bool operator==(const FusedStep&) const = default;
};

/// "i3", "t0".
std::string format_fused_operand(const FusedOperand& operand);
/// Returns the operand that `word`, a word of `line`, names; `before` steps precede the line.
/// Throws kInvalidArgument, with the line, on anything else.
FusedOperand parse_fused_operand(std::string_view line, std::string_view word, std::size_t before);
/// Returns a step as a line of a program, without the end of the line. parse_fused_step reads the
/// step's number back bit for bit.
std::string format_fused_step(const FusedStep& step);
/// Returns the step that `line` describes; `before` steps precede it. Throws kInvalidArgument, with
/// the line, on anything else.
FusedStep parse_fused_step(std::string_view line, std::size_t before);

/// Returns the text of a program. parse_fused_program reads its numbers back bit for bit.
std::string format_fused_program(std::span<const FusedStep> steps);
/// Returns the steps of a program. Throws kInvalidArgument, with the line, if `text` is no program.
std::vector<FusedStep> parse_fused_program(std::string_view text);

}  // namespace paceline
