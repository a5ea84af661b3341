// Update rules on memory: for a range of a variable's elements, some of its rows, or all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "paceline/rule.h"

namespace paceline {

/// Numbers that hold for all elements of one contribution.
struct RuleStep {
  float learning_rate = 0;
  float clip_scale = 1;    // factor of the gradient
  float weight_decay = 0;  // weight_decay·w is added to the scaled gradient
  std::int64_t count = 1;  // Adam's t: 1 for the first contribution
  /// If above 0, the last slot is a moving average of the variable, which the same pass updates
  /// after the rule: a ← average_decay·a + (1 − average_decay)·w.
  float average_decay = 0;
  /// If true, a gradient is not applied from its first NaN or infinity on (apply_rule). For rows
  /// and whole variables, the caller of the kernels refuses such a gradient.
  bool must_be_finite = false;
};

/// A range of a float32 variable. Slot pointers are in the order of Rule::slots() without the
/// scalar slots (the caller keeps those: `count`), then the moving average, if there is one. All
/// ranges have equal length.
struct RuleRange {
  std::span<float> values;
  std::span<float* const> slots;
  std::span<const float> gradient;
};

/// Applies the rule to the range, element by element, so splitting a range changes no bit of the
/// result. Clip scale and weight decay are for gradients: ema, add and assign take their
/// contribution unchanged. Returns the number of elements to which the rule was applied. These are
/// all elements or, if the gradient must be finite and is not, those before its first bad element,
/// or somewhat fewer.
std::size_t apply_rule(const Rule& rule, const RuleStep& step, const RuleRange& range);

/// A whole float32 variable as a matrix, whose columns are the product of all dimensions after the
/// first. Slot pointers are as in RuleRange.
struct RuleWhole {
  float* values;
  std::span<float* const> slots;
  const float* gradient;
  std::int64_t rows, columns;
};
/// Applies a rule that needs its whole variable (Rule::whole); apply_rule handles all other rules.
/// The results of the rule's steps lie in memory (RuleProgram::most_elements) that the calling
/// thread keeps for its next call.
void apply_rule_to_whole(const Rule& rule, const RuleStep& step, const RuleWhole& whole,
                         ThreadPool& pool);

/// Rows of a float32 variable with `row_size` columns. The ids are unique and within the variable,
/// which the caller checks. Slot pointers are as in RuleRange.
struct RuleRows {
  float* values;
  std::span<float* const> slots;
  std::span<const std::int32_t> ids;
  const float* gradient;  // (ids.size(), row_size)
  std::int64_t row_size;
};
/// Applies the rule to the rows with these ids; all other rows keep their values and slots. Not for
/// ema, which would have to decay every row.
void apply_rule_to_rows(const Rule& rule, const RuleStep& step, const RuleRows& rows);

}  // namespace paceline
