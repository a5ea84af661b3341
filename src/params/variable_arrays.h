// The arrays that belong to a variable: its value, and the slots of its rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// Returns the number of elements in one row of the value; a scalar has one row.
std::int64_t row_elements(const VariableSpec& variable);
std::size_t row_bytes(const VariableSpec& variable);
/// Returns the variable's shape with `rows` rows; for a scalar, returns its shape unchanged.
Shape shape_of_rows(const VariableSpec& variable, std::int64_t rows);
/// Returns the shape of a contribution: that of the variable or, for a sparse variable, the same
/// with `most_rows` rows.
Shape contribution_shape(const VariableSpec& variable, std::int64_t most_rows);
/// Returns the slots that are kept with a variable; there are none if the variable is not trained.
/// A scalar slot is an int64. The order is:
/// - the slots of its rule;
/// - the count of contributions, if the average's decay depends on it and the rule does not count
///   them;
/// - the moving average, if the variable has one. It begins as a copy of the value.
std::vector<SlotSpec> slots_of(const VariableSpec& variable);
/// True when the variable's last slot is a moving average.
bool has_average(const VariableSpec& variable);
/// Returns the decay of the average in the count-th contribution to the variable, from 1.
float average_decay_at(const VariableSpec& variable, std::int64_t count);
constexpr std::string_view kAverageSlot = "average";
constexpr std::size_t kScalarSlotBytes = sizeof(std::int64_t);

}  // namespace paceline
