// The numbers and arrays that the loops of update rules get.
#pragma once

#include <cstddef>

#include "kernels/rule_kernel.h"

namespace paceline {

/// The numbers of one contribution in the form that the loops use.
struct RuleNumbers {
  float clip_scale, weight_decay, rate;
  float a, b, c;
  bool nesterov;  // DelayedNesterov: this update renews the momentum
  float average_decay;
  float keep;  // AdamW: the factor on the old value
  bool must_be_finite;
};

/// Returns the numbers of one contribution to a variable with a built-in rule.
RuleNumbers rule_numbers(const Rule& rule, const RuleStep& step);

/// The arrays of a range.
struct RuleMemory {
  static constexpr std::size_t kMostSlots = 4;
  float* values;
  float* slots[kMostSlots];  // the slots of the rule, and one more for a moving average
  std::size_t slot_count;
  const float* gradient;
  std::size_t size;
};

}  // namespace paceline
