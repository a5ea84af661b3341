// A worker's variables in an all-reduce: all values and slots, which a joiner is sent.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "params/shard/variable_memory.h"

namespace paceline {

/// Not thread-safe: whoever changes values sees to it that nobody reads them meanwhile.
class HeldVariables {
 public:
  /// All values are zeros at first. Throws kInvalidArgument as VariableMemory does, and for a name
  /// that comes twice.
  explicit HeldVariables(std::vector<VariableSpec> variables);

  std::span<const VariableSpec> specs() const { return specs_; }
  /// Throws kNotFound.
  VariableMemory& at(VariableId variable);
  std::deque<VariableMemory>& all() { return memories_; }

  /// Bytes of one array as a frame carries them: `flags` is the array, `id` the variable.
  struct Range {
    std::uint32_t variable = 0;
    std::uint16_t array = 0;
    std::size_t offset = 0;
    std::span<const std::byte> bytes;
  };
  /// Everything, in the order in which it is to be written elsewhere. Scalars are copied to
  /// `scalars`, which must outlive the ranges.
  std::vector<Range> ranges(std::deque<std::int64_t>& scalars) const;
  /// Throws kDataLoss for a range that is not in a variable.
  void write(std::uint32_t variable, std::uint16_t array, std::size_t offset,
             std::span<const std::byte> bytes);

 private:
  const std::vector<VariableSpec> specs_;
  std::vector<Tensor> values_;
  std::deque<VariableMemory> memories_;
};

}  // namespace paceline
