// The program of a custom rule, in the form in which workers send it to a ps.
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

/// A program has steps of two kinds, both in the form of fused_elementwise. Scalar steps are
/// computed once for each contribution; besides the fusable ops there is "number", a constant
/// without operands. Element steps are computed for each element.
///
/// A whole program computes each element step for the whole variable before the next step. The
/// result of a step is a matrix or one number. Further steps are "matmul a b n", where bit 0 of n
/// transposes a and bit 1 transposes b, and "reduce_sum a", the sum of all elements.
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
  /// The new value, then the new slots. Each is the result of an element step, or the input with
  /// the old value, which then stays as it is.
  std::vector<FusedOperand> results;

  // complete() computes the next two members from those above.
  /// The index of each element step's op in fusable_ops(); 0 for a matrix step.
  std::vector<std::uint8_t> element_ops;
  /// For each element step, the index of the last step that reads its result; the number of steps
  /// if the result is one of the program's.
  std::vector<std::size_t> last_reads;

  /// Rows and columns. One number is 1 by 1.
  struct Extent {
    std::int64_t rows = 1, columns = 1;
    std::int64_t elements() const { return rows * columns; }
    bool operator==(const Extent&) const = default;
  };
  /// Returns the extents of the results of a whole program's element steps, for a variable of
  /// extent `variable`. Throws kInvalidArgument, naming the rule, if extents do not fit one
  /// another.
  std::vector<Extent> step_extents(const Extent& variable) const;
  /// Returns the most elements that a whole program needs at a time for the scaled gradient and for
  /// those results of steps that are still to be read.
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

  /// Returns the number of the element steps' input that is scalar `index`. This index is one of
  /// ScalarInput, or kScalarInputs + i for the result of scalar step i.
  int scalar_input(int index) const { return kFirstSlot + int(slots.size()) + index; }
  /// Returns how many scalars there are, the inputs included.
  std::size_t scalar_count() const { return kScalarInputs + scalar_steps.size(); }
  /// True if some step reads the count, or the program is code.
  bool reads_count() const;

  /// Returns the program as text, with a line for the name and one for each slot, step and result.
  std::string text() const;
  /// Reads such a text. Throws kInvalidArgument on anything else.
  static RuleProgram parse(std::string_view text);
  /// Checks the program, and computes element_ops and last_reads. Throws kInvalidArgument, naming
  /// the rule, if the program is not valid.
  void complete();
  /// Returns the input that result `result` replaces.
  static FusedOperand replaced(std::size_t result);
  /// Throws kInvalidArgument, with the rule's name and `why`.
  [[noreturn]] void refuse(const std::string& why) const;

  bool operator==(const RuleProgram& other) const { return text() == other.text(); }
};

}  // namespace paceline
