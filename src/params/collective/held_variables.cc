#include "params/collective/held_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/machine_memory.h"
#include "base/row_count.h"
#include "params/variable_arrays.h"
#include "params/wire/message.h"

namespace paceline {
namespace {

// Values and slots; and the contributions and their sums, which are as large as the values.
double bytes_needed(std::span<const VariableSpec> variables) {
  double bytes = 0;
  for (const VariableSpec& variable : variables) {
    bytes += double(variable.shape.elements()) * double(size_of(variable.dtype)) *
             double(1 + slots_of(variable).size() + (variable.trained ? 2 : 0));
  }
  return bytes;
}

std::span<std::byte> bytes_of_value(const Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.raw()), tensor.bytes()};
}

}  // namespace

HeldVariables::HeldVariables(std::vector<VariableSpec> variables) : specs_(std::move(variables)) {
  check_fits_machine("[all-reduce] the variables need", bytes_needed(specs_));
  std::set<std::string> names;
  for (const VariableSpec& spec : specs_) {
    if (!names.insert(spec.name).second) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[all-reduce] two variables are named {}", spec.name));
    }
    values_.emplace_back(spec.dtype, spec.shape);
    memories_.emplace_back(spec, 0, row_count(spec.shape), bytes_of_value(values_.back()));
  }
}

VariableMemory& HeldVariables::at(VariableId variable) {
  if (variable >= 0 && std::size_t(variable) < memories_.size()) {
    return memories_[std::size_t(variable)];
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("[all-reduce] variable {} of {}", variable, memories_.size()));
}

std::vector<HeldVariables::Range> HeldVariables::ranges(std::deque<std::int64_t>& scalars) const {
  std::vector<Range> all;
  for (std::size_t v = 0; v < memories_.size(); ++v) {
    const VariableMemory& memory = memories_[v];
    for (std::size_t array = 0; array < memory.arrays(); ++array) {
      std::span<const std::byte> bytes = memory.array(array);
      if (bytes.empty() && memory.array_bytes(array) == kScalarSlotBytes) {
        scalars.push_back(memory.count());
        bytes = std::as_bytes(std::span(&scalars.back(), 1));
      }
      std::size_t offset = 0;
      do {
        const std::size_t some = std::min(kChunkBytes, bytes.size() - offset);
        all.push_back(
            {std::uint32_t(v), std::uint16_t(array), offset, bytes.subspan(offset, some)});
        offset += some;
      } while (offset < bytes.size());
    }
  }
  return all;
}

void HeldVariables::write(std::uint32_t variable, std::uint16_t array, std::size_t offset,
                          std::span<const std::byte> bytes) {
  const bool known = variable < memories_.size() && array < memories_[variable].arrays();
  const std::size_t size = known ? memories_[variable].array_bytes(array) : 0;
  if (!known || offset > size || bytes.size() > size - offset) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] write of {} bytes at {} of array {} of variable {}",
                            bytes.size(), offset, array, variable));
  }
  memories_[variable].write(array, offset, bytes);
}

}  // namespace paceline
