// Standard normal values for the inputs of one task.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "paceline/graph.h"

namespace paceline {

/// Standard normal values at the cost of a table look-up: the quantiles of the normal distribution
/// at 65,536 equally likely points, scaled to variance 1. A number of 16 bits from Philox chooses
/// one of them. The table takes 256 KiB, and is made once.
class NormalTable {
 public:
  NormalTable();
  /// Fills `values` with numbers that depend on (key, step, element) only.
  void fill(std::span<float> values, std::uint64_t key, std::uint64_t step) const;

 private:
  std::vector<float> quantiles_;
};

/// Any thread may call it.
class InputNormals {
 public:
  InputNormals(std::uint64_t seed, std::int64_t task)
      : seed_(seed + kTaskStride * std::uint64_t(task)) {}
  /// Fills `values` for `input` in the task's own step `step`. The values depend on nothing but
  /// these two, the seed and the task.
  void fill(std::span<float> values, Value input, std::int64_t step) const {
    table_.fill(values, random_key(seed_, input.node().name()), std::uint64_t(step));
  }

 private:
  // The stride is odd, so no two tasks have the same seed and draw the same numbers.
  static constexpr std::uint64_t kTaskStride = 0x9e3779b97f4a7c15;

  NormalTable table_;
  std::uint64_t seed_;
};

}  // namespace paceline
