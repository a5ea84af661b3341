// The update rules as their papers write them, one element at a time in float64; fast kernels are
// tested against them.
#pragma once

#include "kernels/rule_kernel.h"

namespace paceline {

/// Has the contract of apply_rule.
void apply_rule_naively(const Rule& rule, const RuleStep& step, const RuleRange& range);
/// Has the contract of apply_rule_to_whole; computes in float64.
void apply_rule_to_whole_naively(const Rule& rule, const RuleStep& step, const RuleWhole& whole);

}  // namespace paceline
