// The loops of update rules are given these numbers and arrays.
#pragma once

#include <cstddef>

namespace paceline {

/// The numbers of one contribution in the form in which the loops use them.
struct RuleNumbers {
  float clip_scale, weight_decay, rate;
  float a, b, c;
  bool nesterov;  // DelayedNesterov: the momentum is renewed
  float average_decay;
  float keep;  // AdamW: what stays of the value
  bool must_be_finite;
};

/// The arrays of a range.
struct RuleMemory {
  static constexpr std::size_t kMostSlots = 4;
  float* values;
  float* slots[kMostSlots];  // of the rule, and one more where a moving average is kept
  std::size_t slot_count;
  const float* gradient;
  std::size_t size;
};

}  // namespace paceline
