// The weighted mean of several workers' contributions to a piece. The contributions are added in
// the given order, so the same list always gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

/// The address and the weight of one worker's contribution. The weights of a mean sum to 1.
struct MeanPart {
  const float* gradient = nullptr;
  std::span<const std::int32_t> rows;  // of a sparse variable; ascending
  float weight = 0;
};

/// The mean of dense contributions, of which there is at least one.
class DenseMean {
 public:
  explicit DenseMean(std::span<const MeanPart> parts);
  /// Writes the mean's elements from `first` on.
  void write(std::size_t first, std::span<float> mean) const;

 private:
  std::vector<float> weights_;
  std::vector<const float*> gradients_;
};

/// The mean of contributions by rows: a row that a contribution lacks counts as zeros.
struct RowMean {
  std::vector<std::int32_t> rows;
  std::vector<float> values;  // (rows.size(), row)
};
void write_row_mean(std::span<const MeanPart> parts, std::size_t row_size, RowMean& mean);

/// Returns the sum of the squares, which has the same bits on any thread.
double sum_of_squares(std::span<const float> values);

}  // namespace paceline
