// The update rules as their papers write them, one element at a time in float64: the oracle for the
// fast ones.
#pragma once

#include "kernels/rule_kernel.h"

namespace paceline {

/// The same contract as apply_rule.
void apply_rule_naively(const Rule& rule, const RuleStep& step, const RuleRange& range);
/// The same contract as apply_rule_to_whole, in float64.
void apply_rule_to_whole_naively(const Rule& rule, const RuleStep& step, const RuleWhole& whole);

}  // namespace paceline
