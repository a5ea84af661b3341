// Standard normal values at the cost of a table look-up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

/// The quantiles of the normal distribution at 65,536 equally likely points, scaled to variance 1.
/// A number of 16 bits from Philox chooses one of them. The table takes 256 KiB, and is made once.
class NormalTable {
 public:
  NormalTable();
  /// Fills `values` with numbers that depend on (key, step, element) only.
  void fill(std::span<float> values, std::uint64_t key, std::uint64_t step) const;

 private:
  std::vector<float> quantiles_;
};

}  // namespace paceline
