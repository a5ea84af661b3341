#include "params/variable_arrays.h"

#include <algorithm>
#include <string>

namespace paceline {

std::int64_t row_elements(const VariableSpec& variable) {
  std::int64_t elements = 1;
  for (int i = 1; i < variable.shape.rank(); ++i) elements *= variable.shape[i];
  return elements;
}

std::size_t row_bytes(const VariableSpec& variable) {
  return std::size_t(row_elements(variable)) * size_of(variable.dtype);
}

Shape shape_of_rows(const VariableSpec& variable, std::int64_t rows) {
  std::vector<std::int64_t> dims(variable.shape.dims().begin(), variable.shape.dims().end());
  if (!dims.empty()) dims.front() = rows;
  return Shape(dims);
}

Shape contribution_shape(const VariableSpec& variable, std::int64_t most_rows) {
  return variable.sparse ? shape_of_rows(variable, most_rows) : variable.shape;
}

std::vector<SlotSpec> slots_of(const VariableSpec& variable) {
  if (!variable.trained) return {};
  std::vector<SlotSpec> slots = variable.rule.slots();
  const bool counts = std::ranges::any_of(slots, &SlotSpec::scalar);
  if (has_average(variable) && variable.average_ramp && !counts) slots.push_back({"t", true});
  if (has_average(variable)) slots.push_back({std::string(kAverageSlot)});
  return slots;
}

float average_decay_at(const VariableSpec& variable, std::int64_t count) {
  if (!variable.average_ramp) return variable.average_decay;
  return std::min(variable.average_decay, float(1 + count) / float(10 + count));
}

bool has_average(const VariableSpec& variable) {
  return variable.trained && variable.average_decay > 0;
}

}  // namespace paceline
