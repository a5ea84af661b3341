// Standard normal values for the inputs of one task.
#pragma once

#include <cstdint>
#include <span>

#include "base/philox.h"
#include "paceline/graph.h"
#include "train/normal_table.h"

namespace paceline {

/// Any thread may use it.
class InputNormals {
 public:
  InputNormals(std::uint64_t seed, std::int64_t task)
      : seed_(seed + kTaskStride * std::uint64_t(task)) {}
  /// Values for `input` in the task's own step `step`; they depend on nothing but these, the seed
  /// and the task.
  void fill(std::span<float> values, Value input, std::int64_t step) const {
    table_.fill(values, random_key(seed_, input.node().name()), std::uint64_t(step));
  }

 private:
  // Tasks must not draw the same numbers: odd, so that no two tasks share a seed.
  static constexpr std::uint64_t kTaskStride = 0x9e3779b97f4a7c15;

  NormalTable table_;
  std::uint64_t seed_;
};

}  // namespace paceline
