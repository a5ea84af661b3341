// The label of a timeline's events in which the rule of a variable is applied.
#pragma once

#include <string>

#include "exec/parameter_store.h"
#include "trace/timeline.h"

namespace paceline {

inline TimelineLabel rule_label(const VariableSpec& variable) {
  const std::string rule(variable.rule.name());
  return {rule + " " + variable.name,
          "rule",
          {{"variable", variable.name}, {"shape", variable.shape.str()}}};
}

/// Returns the label for a piece of the variable, on a ps.
inline TimelineLabel rule_label(const VariableSpec& variable, std::uint32_t piece) {
  TimelineLabel label = rule_label(variable);
  label.arguments.emplace_back("piece", std::to_string(piece));
  return label;
}

}  // namespace paceline
