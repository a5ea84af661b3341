// The update rules as their papers write them, one element at a time in float64; fast kernels are
// tested against them.
#pragma once

#include "kernels/rule_kernel.h"

namespace paceline {

/// Applies the rule as apply_rule does, but always to all elements.
void apply_rule_naively(const Rule& rule, const RuleStep& step, const RuleRange& range);
/// Applies a rule that has steps, not code, as apply_rule_to_whole does, but in float64.
void apply_rule_to_whole_naively(const Rule& rule, const RuleStep& step, const RuleWhole& whole);

}  // namespace paceline
