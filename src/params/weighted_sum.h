// Weighted sums of numbers, in a fixed order, and how many numbers are worth a thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

/// The fewest numbers for which another thread helps: to add this many, or to apply a rule to them,
/// takes some microseconds, as long as waking a thread.
constexpr std::int64_t kNumbersGrain = 16 * 1024;

/// sum[i] = weight · values[i].
void scale(float weight, std::span<const float> values, float* sum);
/// sum[i] = before[i] + weight · values[i]; `sum` may be `before`.
void add_scaled(const float* before, float weight, std::span<const float> values, float* sum);
/// sum[i] = Σ weights[k] · inputs[k][first + i], added in the order of k. Reads all inputs side by
/// side. If they were read one after the other, block by block, memory would deliver them at two
/// thirds of the rate.
void weighted_sum(std::span<const float> weights, std::span<const float* const> inputs,
                  std::size_t first, std::span<float> sum);

/// Rows of one member.
struct WeightedRows {
  float weight = 0;
  std::span<const std::int32_t> ids;  // unique
  const float* rows = nullptr;        // (ids.size(), row)
};
/// Sums rows with equal ids, in the order of `members`. The ids of the sums ascend.
void sum_rows(std::span<const WeightedRows> members, std::size_t row,
              std::vector<std::int32_t>& ids, std::vector<float>& rows);

}  // namespace paceline
