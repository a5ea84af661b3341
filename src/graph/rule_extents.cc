// The sizes of what a whole rule's program computes.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/rule_program.h"

namespace paceline {
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
