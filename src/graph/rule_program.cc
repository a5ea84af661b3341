#include "graph/rule_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "graph/rule_names.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using Kind = FusedOperand::Kind;

constexpr std::size_t kMostNameLetters = 32;
[[noreturn]] void refuse_named(std::string_view name, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[rule] {}: {}", name, why));
}

bool is_word(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kMostNameLetters && std::ranges::all_of(name, fits);
}

// True for a name that checkpoints use for a rule of the library.
bool is_taken(std::string_view name) {
  return std::ranges::find(kRuleNames, name) != kRuleNames.end();
}

void check_slots(const RuleProgram& program) {
  if (program.slots.size() > CustomRule::kMostSlots) {
    program.refuse(fmt::format("it has {} slots; at most {} are possible", program.slots.size(),
                               CustomRule::kMostSlots));
  }
  for (std::size_t i = 0; i < program.slots.size(); ++i) {
    const SlotSpec& slot = program.slots[i];
    if (!is_word(slot.name) || slot.name == "t" || slot.name == "average") {
      program.refuse(fmt::format("a slot cannot be named '{}'", slot.name));
    }
    if (slot.scalar) {
      program.refuse(fmt::format("slot {} cannot be scalar", slot.name));
    }
    if (!std::isfinite(slot.initial)) {
      program.refuse(fmt::format("slot {} cannot begin with {}", slot.name, slot.initial));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (program.slots[j].name != slot.name) continue;
      program.refuse(fmt::format("two slots are named {}", slot.name));
    }
  }
}

void check_name(const std::string& name) {
  if (!is_word(name)) {
    refuse_named(name, fmt::format("a name has 1 to {} lower-case letters, digits and '_'",
                                   kMostNameLetters));
  }
  if (is_taken(name)) refuse_named(name, "a rule of the library has this name");
}

void check_inputs(const RuleProgram& program, std::span<const FusedStep> steps, int inputs) {
  if (steps.size() > CustomRule::kMostSteps) {
    program.refuse(fmt::format("it has {} steps of a kind; at most {} are possible", steps.size(),
                               CustomRule::kMostSteps));
  }
  for (const FusedStep& step : steps) {
    for (const FusedOperand& operand : step.operands) {
      if (operand.kind == Kind::kStep || operand.index < inputs) continue;
      program.refuse(fmt::format("step '{}' reads input {} of {}", format_fused_step(step),
                                 operand.index, inputs));
    }
  }
}

void check_results(const RuleProgram& program) {
  if (program.results.size() != 1 + program.slots.size()) {
    program.refuse(fmt::format("it has {} results for a value and {} slots", program.results.size(),
                               program.slots.size()));
  }
  for (std::size_t i = 0; i < program.results.size(); ++i) {
    const FusedOperand& result = program.results[i];
    if (result.kind == Kind::kStep || result == RuleProgram::replaced(i)) continue;
    program.refuse(fmt::format("result {} is no step", i));
  }
}

// Returns, for each element step, the index of the last step that reads its result, 0 if none does.
// For a result of the program, returns the number of steps.
std::vector<std::size_t> last_reads_of(const RuleProgram& program) {
  std::vector<std::size_t> last(program.element_steps.size(), 0);
  for (std::size_t j = 0; j < program.element_steps.size(); ++j) {
    for (const FusedOperand& operand : program.element_steps[j].operands) {
      if (operand.kind == Kind::kStep) last[std::size_t(operand.index)] = j;
    }
  }
  for (const FusedOperand& result : program.results) {
    if (result.kind == Kind::kStep) last[std::size_t(result.index)] = program.element_steps.size();
  }
  return last;
}

// Removes the text's first word, which `end` or the end of the text ends, and the character after
// it; returns the word.
std::string_view take_word(std::string_view& text, char end) {
  const std::size_t length = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return word;
}

template <typename Number>
Number read_number(const RuleProgram& program, std::string_view word) {
  Number number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) {
    program.refuse(fmt::format("'{}' is no number", word));
  }
  return number;
}

void read_scalar_step(RuleProgram& program, std::string_view line) {
  std::string_view rest = line;
  if (take_word(rest, ' ') == RuleProgram::kNumber) {
    program.scalar_steps.push_back(
        {std::string(RuleProgram::kNumber), {}, read_number<double>(program, rest)});
    return;
  }
  program.scalar_steps.push_back(parse_fused_step(line, program.scalar_steps.size()));
}

FusedStep read_matrix_step(const RuleProgram& program, std::string_view line) {
  std::string_view rest = line;
  FusedStep step{std::string(take_word(rest, ' ')), {}, 0};
  const bool product = step.op == RuleProgram::kMatmul;
  if (!program.whole || !RuleProgram::is_matrix_step(step)) {
    program.refuse(fmt::format("it has no step '{}'", line));
  }
  for (int i = 0; i < (product ? 2 : 1); ++i) {
    const std::string_view word = take_word(rest, ' ');
    if (word.empty()) program.refuse(fmt::format("step '{}' lacks an operand", line));
    step.operands.push_back(parse_fused_operand(line, word, program.element_steps.size()));
  }
  if (product) step.number = read_number<int>(program, take_word(rest, ' '));
  if (!rest.empty() || step.number < 0 || step.number > 3) {
    program.refuse(fmt::format("step '{}' has another form", line));
  }
  return step;
}

std::string format_matrix_step(const FusedStep& step) {
  std::string text = "matrix " + format_fused_step(step);
  if (step.op == RuleProgram::kMatmul) text += fmt::format(" {}", int(step.number));
  return text;
}

void read_line(RuleProgram& program, std::string_view line) {
  std::string_view rest = line;
  const std::string_view what = take_word(rest, ' ');
  if (what == "rule" && program.name.empty()) {
    program.name = rest;
  } else if (what == "whole" && rest.empty()) {
    program.whole = true;
  } else if (what == "code" && rest.empty() && program.whole) {
    program.by_code = true;
  } else if (what == "matrix") {
    program.element_steps.push_back(read_matrix_step(program, rest));
  } else if (what == "slot") {
    const std::string_view name = take_word(rest, ' ');
    program.slots.push_back({std::string(name), false, read_number<float>(program, rest)});
  } else if (what == "scalar") {
    read_scalar_step(program, rest);
  } else if (what == "element") {
    program.element_steps.push_back(parse_fused_step(rest, program.element_steps.size()));
  } else if (what == "result" && !rest.empty()) {
    program.results.push_back(parse_fused_operand(line, rest, program.element_steps.size()));
  } else {
    program.refuse(fmt::format("the line '{}' is unknown", line));
  }
}

}  // namespace

FusedOperand RuleProgram::replaced(std::size_t result) {
  return {Kind::kInput, result == 0 ? int(kValue) : kFirstSlot + int(result) - 1};
}

void RuleProgram::refuse(const std::string& why) const { refuse_named(name, why); }

void RuleProgram::complete() {
  check_name(name);
  check_slots(*this);
  check_inputs(*this, scalar_steps, kScalarInputs);
  check_inputs(*this, element_steps, scalar_input(int(scalar_count())));
  if (by_code && !(scalar_steps.empty() && element_steps.empty())) {
    refuse("it has steps beside the program's own code");
  }
  check_results(*this);
  element_ops.clear();
  for (const FusedStep& step : element_steps) {
    const FusableOp* const op = find_fusable_op(step.op);
    element_ops.push_back(op == nullptr ? 0 : std::uint8_t(op - fusable_ops().data()));
  }
  last_reads = last_reads_of(*this);
  // Extents that fit each other in a variable of 2 by 3 fit in all variables: 2 and 3 differ from
  // each other and from the 1 by 1 of a single number.
  if (whole) step_extents({2, 3});
}

bool RuleProgram::reads_count() const {
  if (by_code) return true;
  const FusedOperand in_scalar{Kind::kInput, kCount};
  const FusedOperand in_element{Kind::kInput, scalar_input(kCount)};
  const auto reads = [](std::span<const FusedStep> steps, const FusedOperand& operand) {
    return std::ranges::any_of(steps, [&](const FusedStep& step) {
      return std::ranges::find(step.operands, operand) != step.operands.end();
    });
  };
  return reads(scalar_steps, in_scalar) || reads(element_steps, in_element);
}

std::string RuleProgram::text() const {
  std::string text = "rule " + name + "\n";
  if (whole) text += "whole\n";
  if (by_code) text += "code\n";
  for (const SlotSpec& slot : slots)
    text += fmt::format("slot {} {:.9g}\n", slot.name, slot.initial);
  for (const FusedStep& step : scalar_steps) {
    text += step.op == kNumber ? fmt::format("scalar number {:.17g}\n", step.number)
                               : "scalar " + format_fused_step(step) + "\n";
  }
  for (const FusedStep& step : element_steps) {
    text += is_matrix_step(step) ? format_matrix_step(step) : "element " + format_fused_step(step);
    text += "\n";
  }
  for (const FusedOperand& result : results)
    text += "result " + format_fused_operand(result) + "\n";
  return text;
}

RuleProgram RuleProgram::parse(std::string_view text) {
  RuleProgram program;
  while (!text.empty()) read_line(program, take_word(text, '\n'));
  program.complete();
  return program;
}

// The sizes of the values that a whole rule's program computes.

namespace {

using Extent = RuleProgram::Extent;

std::string text_of(const Extent& extent) {
  return fmt::format("({},{})", extent.rows, extent.columns);
}

double elements_of(const Extent& extent) { return double(extent.rows) * double(extent.columns); }

Extent transposed(const Extent& extent, bool yes) {
  return yes ? Extent{extent.columns, extent.rows} : extent;
}

}  // namespace

RuleProgram::Extent RuleProgram::operand_extent(const FusedOperand& operand, const Extent& variable,
                                                std::span<const Extent> steps) const {
  if (operand.kind == FusedOperand::Kind::kStep) return steps[std::size_t(operand.index)];
  return operand.index < scalar_input(0) ? variable : Extent();
}

std::vector<RuleProgram::Extent> RuleProgram::step_extents(const Extent& variable) const {
  std::vector<Extent> extents;
  for (const FusedStep& step : element_steps) {
    std::vector<Extent> of;
    for (const FusedOperand& operand : step.operands) {
      of.push_back(operand_extent(operand, variable, extents));
    }
    const auto unfit = [&](const Extent& a, const Extent& b) {
      refuse(fmt::format("{} of {} and {}, in a variable of {}", step.op, text_of(a), text_of(b),
                         text_of(variable)));
    };
    if (step.op == kSum) {
      extents.emplace_back();
    } else if (step.op == kMatmul) {
      const Extent a = transposed(of[0], transposes(step, 0));
      const Extent b = transposed(of[1], transposes(step, 1));
      if (a.columns != b.rows) unfit(of[0], of[1]);
      extents.push_back({a.rows, b.columns});
    } else {
      Extent result;
      for (const Extent& each : of) {
        if (result == Extent()) result = each;
        if (each != Extent() && each != result) unfit(result, each);
      }
      extents.push_back(result);
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Extent extent = operand_extent(results[i], variable, extents);
    if (extent != variable) {
      refuse(fmt::format("result {} is {}, and the variable is {}", i, text_of(extent),
                         text_of(variable)));
    }
  }
  return extents;
}

double RuleProgram::most_elements(const Extent& variable) const {
  const std::vector<Extent> extents = step_extents(variable);
  double most = 0, now = elements_of(variable);  // the scaled gradient
  for (std::size_t j = 0; j < extents.size(); ++j) {
    now += elements_of(extents[j]);
    most = std::max(most, now);
    for (std::size_t i = 0; i <= j; ++i) {
      if (std::max(last_reads[i], i) == j) now -= elements_of(extents[i]);
    }
  }
  return most;
}

}  // namespace paceline
