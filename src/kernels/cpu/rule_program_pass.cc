#include "kernels/cpu/rule_program_pass.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"
#include "kernels/rule_scalars.h"

namespace paceline {
namespace {

using Kind = FusedOperand::Kind;

// Returns the vector op of each op of fusable_ops(), in their order, before steps are joined.
std::vector<VectorOp> vector_ops() {
  std::vector<VectorOp> ops;
  for (const FusableOp& op : fusable_ops()) {
    ops.push_back(op.name == "add"      ? VectorOp::kAdd
                  : op.name == "sub"    ? VectorOp::kSub
                  : op.name == "mul"    ? VectorOp::kMul
                  : op.name == "div"    ? VectorOp::kDiv
                  : op.name == "scale"  ? VectorOp::kScale
                  : op.name == "square" ? VectorOp::kSquare
                  : op.name == "sqrt"   ? VectorOp::kSqrt
                                        : VectorOp::kFunction);
  }
  return ops;
}

VectorOp vector_op(std::uint8_t op) {
  static const std::vector<VectorOp> all = vector_ops();
  return all[op];
}

// Returns the op that computes the same result from exchanged operands; nothing if there is none.
std::optional<VectorOp> exchanged(VectorOp op) {
  switch (op) {
    case VectorOp::kAdd:
    case VectorOp::kMul:
      return op;
    case VectorOp::kSub:
      return VectorOp::kSubFrom;
    case VectorOp::kDiv:
      return VectorOp::kDivInto;
    default:
      return std::nullopt;
  }
}

/// The computation of an instruction, from operands of the rule's program.
struct Form {
  VectorOp op = VectorOp::kFunction;
  std::array<FusedOperand, 3> operands = {};
  std::size_t operand_count = 1;
  float number = 0;
};

/// Writes the instructions of a rule's element steps. A result that only the next step reads stays
/// in registers, and a product of an array and a number becomes part of the sum that uses it.
class RuleVectorWriter {
 public:
  RuleVectorWriter(const RuleProgram& program, const RuleStep& step, VectorProgram& vectors)
      : program_(program), step_(step), scalars_(rule_scalars(program, step)), vectors_(vectors) {
    for (const FusedStep& each : program.element_steps) count_reads(each.operands);
    count_reads(program.results);
    for (std::size_t j = 0; j < program.element_steps.size(); ++j) mark_part(int(j));
  }

  void write() {
    scale_gradient();
    for (int j = 0; j < int(program_.element_steps.size()); ++j) {
      if (!is_part_[std::size_t(j)]) add_step(j);
    }
    if (last_step_ >= 0 && step_reads_[std::size_t(last_step_)] > 0) keep_last_result();
    put_results();
    renew_average();
  }

 private:
  static constexpr std::size_t kMostInputs = RuleProgram::kFirstSlot + CustomRule::kMostSlots +
                                             RuleProgram::kScalarInputs + CustomRule::kMostSteps;

  const FusedStep& element_step(int j) const { return program_.element_steps[std::size_t(j)]; }
  VectorOp op_of(int j) const { return vector_op(program_.element_ops[std::size_t(j)]); }
  std::uint8_t& reads(const FusedOperand& operand) {
    return (operand.kind == Kind::kStep ? step_reads_.data()
                                        : input_reads_.data())[std::size_t(operand.index)];
  }
  void count_reads(std::span<const FusedOperand> operands) {
    for (const FusedOperand& operand : operands) ++reads(operand);
  }
  bool is_number(const FusedOperand& operand) const {
    return operand.kind == Kind::kInput && operand.index >= program_.scalar_input(0);
  }
  float number(const FusedOperand& operand) const {
    return float(scalars_[std::size_t(operand.index - program_.scalar_input(0))]);
  }

  /// Returns the form of step j without a product that is part of it.
  Form form_of_step(int j) const {
    const FusedStep& step = element_step(j);
    Form form{op_of(j), {}, step.operands.size(), float(step.number)};
    std::ranges::copy(step.operands, form.operands.begin());
    if (form.op != VectorOp::kMul) return form;
    const auto& [a, b, c] = form.operands;
    if (is_number(b)) return {VectorOp::kScale, {a}, 1, number(b)};
    if (is_number(a)) return {VectorOp::kScale, {b}, 1, number(a)};
    return form;
  }

  bool may_be_part(const FusedOperand& operand) {
    if (operand.kind != Kind::kStep || reads(operand) != 1) return false;
    const Form form = form_of_step(operand.index);
    return form.op == VectorOp::kScale && form.operands[0].kind == Kind::kInput;
  }
  // If step j is a sum or a difference, marks at most one of its terms as part of it.
  void mark_part(int j) {
    const auto& operands = element_step(j).operands;
    const bool sum = op_of(j) == VectorOp::kAdd, difference = op_of(j) == VectorOp::kSub;
    if ((sum || difference) && may_be_part(operands[1])) {
      is_part_[std::size_t(operands[1].index)] = true;
    } else if (sum && may_be_part(operands[0])) {
      is_part_[std::size_t(operands[0].index)] = true;
    }
  }
  bool is_part(const FusedOperand& operand) const {
    return operand.kind == Kind::kStep && is_part_[std::size_t(operand.index)];
  }

  /// Returns the form of step j together with the product that is part of it, if there is one.
  Form form_of(int j) const {
    const Form form = form_of_step(j);
    if (form.op != VectorOp::kAdd && form.op != VectorOp::kSub) return form;
    const auto& [a, b, c] = form.operands;
    if (!is_part(a) && !is_part(b)) return form;
    const Form part = form_of_step(is_part(b) ? b.index : a.index);
    return {form.op == VectorOp::kAdd ? VectorOp::kAddScaled : VectorOp::kSubScaled,
            {is_part(b) ? a : b, part.operands[0]},
            2,
            part.number};
  }

  bool is_last_result(const FusedOperand& operand) const {
    return operand == FusedOperand{Kind::kStep, last_step_};
  }

  void add_step(int j) {
    Form form = form_of(j);
    auto& [a, b, c] = form.operands;
    const std::optional<VectorOp> other = exchanged(form.op);
    if (other && !is_last_result(a) && (is_last_result(b) || is_number(a))) {
      std::swap(a, b);
      form.op = *other;
    }
    const bool in_registers = is_last_result(a);
    if (last_step_ >= 0 && step_reads_[std::size_t(last_step_)] > (in_registers ? 1 : 0)) {
      keep_last_result();
    }
    std::array<std::uint8_t, 3> places = {};
    for (std::size_t k = 0; k < form.operand_count; ++k) {
      const bool here = k == 0 && in_registers;
      places[k] = here ? VectorInstruction::kInRegisters : place(form.operands[k]);
      --reads(form.operands[k]);
    }
    last_ = &vectors_.add({.op = form.op,
                           .a = places[0],
                           .b = places[1],
                           .c = places[2],
                           .number = form.number,
                           .function = element_function_at(program_.element_ops[std::size_t(j)])});
    last_step_ = j;
  }

  /// Puts the last result into its final place if nothing reads that place any more, else into a
  /// cell.
  void keep_last_result() {
    const FusedOperand last{Kind::kStep, last_step_};
    std::uint8_t& place = step_places_[std::size_t(last_step_)];
    for (std::size_t i = 0; i < program_.results.size(); ++i) {
      const FusedOperand replaced = RuleProgram::replaced(i);
      if (program_.results[i] != last || reads(replaced) > 0) continue;
      place = last_->result = std::uint8_t(replaced.index);
      return;
    }
    place = last_->result = vectors_.add_cell();
  }

  std::uint8_t place(const FusedOperand& operand) {
    const std::size_t index = std::size_t(operand.index);
    if (operand.kind == Kind::kStep) return step_places_[index];
    if (operand.index == RuleProgram::kGradient) return gradient_;
    if (!is_number(operand)) return std::uint8_t(index);
    std::uint8_t& cell = number_cells_[index];
    if (cell == 0) cell = vectors_.add_cell(number(operand));
    return cell;
  }

  void scale_gradient() {
    if (step_.clip_scale == 1 && step_.weight_decay == 0) return;
    const std::uint8_t scaled = vectors_.add_cell();
    VectorInstruction* last = &vectors_.add(
        {.op = VectorOp::kScale, .a = RuleProgram::kGradient, .number = step_.clip_scale});
    if (step_.weight_decay != 0) {
      last = &vectors_.add(
          {.op = VectorOp::kAddScaled, .b = RuleProgram::kValue, .number = step_.weight_decay});
    }
    gradient_ = last->result = scaled;
  }

  void put_results() {
    for (std::size_t i = 0; i < program_.results.size(); ++i) {
      const FusedOperand& result = program_.results[i];
      const std::uint8_t to = std::uint8_t(RuleProgram::replaced(i).index);
      if (result.kind == Kind::kInput || place(result) == to) continue;
      vectors_.add({.op = VectorOp::kCopy, .a = place(result), .result = to});
    }
  }

  void renew_average() {
    if (step_.average_decay <= 0) return;
    const std::uint8_t average = std::uint8_t(RuleProgram::kFirstSlot + program_.slots.size());
    vectors_.add({.op = VectorOp::kScale, .a = average, .number = step_.average_decay});
    vectors_.add({.op = VectorOp::kAddScaled,
                  .b = RuleProgram::kValue,
                  .result = average,
                  .number = 1 - step_.average_decay});
  }

  const RuleProgram& program_;
  const RuleStep& step_;
  const RuleScalars scalars_;
  VectorProgram& vectors_;
  std::array<std::uint8_t, CustomRule::kMostSteps> step_reads_ =
      {};  // reads that are still to come
  std::array<std::uint8_t, kMostInputs> input_reads_ = {};
  std::array<bool, CustomRule::kMostSteps> is_part_ = {};  // whether the step is part of a sum
  std::array<std::uint8_t, CustomRule::kMostSteps> step_places_ = {};
  std::array<std::uint8_t, kMostInputs> number_cells_ = {};  // by number; 0: no cell yet
  std::uint8_t gradient_ = RuleProgram::kGradient;
  VectorInstruction* last_ = nullptr;  // the instruction that computes last_step_
  int last_step_ = -1;
};

std::size_t arrays_of(const RuleProgram& program, const RuleStep& step) {
  return RuleProgram::kFirstSlot + program.slots.size() + (step.average_decay > 0 ? 1 : 0);
}

}  // namespace

RuleProgramPass::RuleProgramPass(const RuleProgram& program, const RuleStep& step)
    : vectors_(arrays_of(program, step)) {
  RuleVectorWriter(program, step, vectors_).write();
}

void RuleProgramPass::run(float* values, std::span<float* const> slots, const float* gradient,
                          std::size_t n) const {
  std::array<float*, VectorProgram::kMostArrays> arrays;
  arrays[RuleProgram::kValue] = values;
  arrays[RuleProgram::kGradient] = const_cast<float*>(gradient);  // no instruction writes to it
  std::ranges::copy(slots, arrays.begin() + RuleProgram::kFirstSlot);
  vectors_.run({arrays.data(), vectors_.arrays()}, n);
}

}  // namespace paceline
