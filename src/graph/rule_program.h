// The program of a rule of one's own, in the form that travels to a ps.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fused_program.h"
#include "paceline/rule.h"

namespace paceline {

/// Steps of two kinds, both in the form of fused_elementwise. Scalar steps are computed once for a
/// contribution; besides the fusable ops they know "number", which has no operand. Element steps
/// are computed for each element.
///
/// A whole program computes each element step for all of its variable before the next one. The
/// results are matrices, or one number; among the steps are "matmul a b n", where bit 0 of n
/// transposes a and bit 1 b, and "reduce_sum a", the sum of all elements.
struct RuleProgram {
  /// Inputs of a scalar step.
  enum ScalarInput : std::uint8_t { kLearningRate, kCount, kScalarInputs };
  /// Inputs of an element step: the value, the gradient, the slots, the inputs of scalar steps, and
  /// the results of scalar steps.
  enum ElementInput : std::uint8_t { kValue, kGradient, kFirstSlot };

  std::string name;
  bool whole = false;
  /// The program's own code changes value and slots (CodeRule): there are no steps.
  bool by_code = false;
  std::function<void(const CodeRuleCall&)>
      code;                     // empty in all processes but the one that defines the rule
  std::vector<SlotSpec> slots;  // the slots that are as large as the variable
  std::vector<FusedStep> scalar_steps, element_steps;
  /// The new value, then the new slots: each the result of an element step, or the input that it
  /// replaces.
  std::vector<FusedOperand> results;

  // complete() makes these from the others.
  /// The place of each element step's op among fusable_ops().
  std::vector<std::uint8_t> element_ops;
  /// For each element step, the last step that reads its result; the number of steps if the program
  /// returns it.
  std::vector<std::size_t> last_reads;

  /// Rows and columns. One number is 1 by 1.
  struct Extent {
    std::int64_t rows = 1, columns = 1;
    std::int64_t elements() const { return rows * columns; }
    bool operator==(const Extent&) const = default;
  };
  /// The extents of the results of a whole program's element steps, for a variable. Throws
  /// kInvalidArgument naming the rule when they do not fit one another.
  std::vector<Extent> step_extents(const Extent& variable) const;
  /// The most elements that results of a whole program's steps have at a time.
  double most_elements(const Extent& variable) const;
  Extent operand_extent(const FusedOperand& operand, const Extent& variable,
                        std::span<const Extent> steps) const;

  static constexpr std::string_view kNumber = "number";
  static constexpr std::string_view kMatmul = "matmul", kSum = "reduce_sum";
  static bool is_matrix_step(const FusedStep& step) {
    return step.op == kMatmul || step.op == kSum;
  }
  static bool transposes(const FusedStep& matmul, int operand) {
    return ((int(matmul.number) >> operand) & 1) != 0;
  }

  /// The input of an element step that is scalar `index`: one of ScalarInput, or kScalarInputs + i
  /// for the result of scalar step i.
  int scalar_input(int index) const { return kFirstSlot + int(slots.size()) + index; }
  /// Returns how many scalars there are, the inputs included.
  std::size_t scalar_count() const { return kScalarInputs + scalar_steps.size(); }
  /// True when some step reads the count.
  bool reads_count() const;

  /// Writes the program as text, a line for each slot, step and result.
  std::string text() const;
  /// Reads such a text. Throws kInvalidArgument on anything else.
  static RuleProgram parse(std::string_view text);
  /// Checks the program and fills in the rest of it. Throws kInvalidArgument naming the rule.
  void complete();
  /// The input that result `result` replaces.
  static FusedOperand replaced(std::size_t result);
  /// Throws kInvalidArgument naming the rule.
  [[noreturn]] void refuse(const std::string& why) const;

  bool operator==(const RuleProgram& other) const { return text() == other.text(); }
};

}  // namespace paceline
