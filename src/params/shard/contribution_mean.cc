#include "params/shard/contribution_mean.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "params/weighted_sum.h"

namespace paceline {

DenseMean::DenseMean(std::span<const MeanPart> parts) {
  for (const MeanPart& part : parts) {
    weights_.push_back(part.weight);
    gradients_.push_back(part.gradient);
  }
}

void DenseMean::write(std::size_t first, std::span<float> mean) const {
  weighted_sum(weights_, gradients_, first, mean);
}

void write_row_mean(std::span<const MeanPart> parts, std::size_t row_size, RowMean& mean) {
  mean.rows.clear();
  for (const MeanPart& part : parts) {
    mean.rows.insert(mean.rows.end(), part.rows.begin(), part.rows.end());
  }
  std::ranges::sort(mean.rows);
  mean.rows.erase(std::unique(mean.rows.begin(), mean.rows.end()), mean.rows.end());
  mean.values.assign(mean.rows.size() * row_size, 0.0f);
  for (const MeanPart& part : parts) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      while (mean.rows[at] != part.rows[i]) ++at;
      float* const sum = mean.values.data() + at * row_size;
      add_scaled(sum, part.weight, {part.gradient + i * row_size, row_size}, sum);
    }
  }
}

// Adds to 16 sums by turns: with a single sum, each addition would wait for the previous addition.
// The number of sums is constant, so that the compiler uses vector instructions.
double sum_of_squares(std::span<const float> values) {
  constexpr std::size_t kSums = 16;
  std::array<double, kSums> sums{};
  const std::size_t whole = values.size() / kSums * kSums;
  for (std::size_t i = 0; i < whole; i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) {
      sums[k] += double(values[i + k]) * double(values[i + k]);
    }
  }
  for (std::size_t i = whole; i < values.size(); ++i) {
    sums[i - whole] += double(values[i]) * double(values[i]);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace paceline
