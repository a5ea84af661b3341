#include "params/collective/weighted_sum.h"

#include <algorithm>
#include <cstddef>

namespace paceline {
namespace {

// A sum of so many numbers stays in the first cache while inputs are added to it.
constexpr std::size_t kSumBlock = 4096;

}  // namespace

void scale(float weight, std::span<const float> values, float* sum) {
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] = weight * values[i];
}

void add_scaled(const float* before, float weight, std::span<const float> values, float* sum) {
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] = before[i] + weight * values[i];
}

void weighted_sum(std::span<const float> weights, std::span<const float* const> inputs,
                  std::size_t count, float* sum) {
  for (std::size_t begin = 0; begin < count; begin += kSumBlock) {
    const std::size_t size = std::min(kSumBlock, count - begin);
    scale(weights[0], {inputs[0] + begin, size}, sum + begin);
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      add_scaled(sum + begin, weights[k], {inputs[k] + begin, size}, sum + begin);
    }
  }
}

void sum_rows(std::span<const WeightedRows> members, std::size_t row,
              std::vector<std::int32_t>& ids, std::vector<float>& rows) {
  ids.clear();
  for (const WeightedRows& member : members)
    ids.insert(ids.end(), member.ids.begin(), member.ids.end());
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  rows.assign(ids.size() * row, 0.0f);
  for (const WeightedRows& member : members) {
    for (std::size_t i = 0; i < member.ids.size(); ++i) {
      const auto at = std::size_t(std::ranges::lower_bound(ids, member.ids[i]) - ids.begin());
      float* const sum = rows.data() + at * row;
      add_scaled(sum, member.weight, {member.rows + i * row, row}, sum);
    }
  }
}

}  // namespace paceline
