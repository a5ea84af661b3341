#include "params/shard/contribution_mean.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace paceline {
namespace {

// A sum of this many elements stays in the fastest cache while the parts stream by. The compiler
// makes vector code of loops over a block, whose length it knows.
constexpr std::size_t kBlock = 2048;

void scale_block(const float* __restrict from, float weight, float* __restrict to) {
  for (std::size_t i = 0; i < kBlock; ++i) to[i] = weight * from[i];
}

void add_block(const float* __restrict from, float weight, float* __restrict to) {
  for (std::size_t i = 0; i < kBlock; ++i) to[i] += weight * from[i];
}

void scale_rest(const float* from, float weight, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = weight * from[i];
}

void add_rest(const float* from, float weight, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += weight * from[i];
}

}  // namespace

void write_mean(std::span<const MeanPart> parts, std::size_t first, std::span<float> mean) {
  for (std::size_t begin = 0; begin < mean.size(); begin += kBlock) {
    const std::span<float> block = mean.subspan(begin, std::min(kBlock, mean.size() - begin));
    const bool whole = block.size() == kBlock;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const float* const from = parts[i].gradient + first + begin;
      const float weight = parts[i].weight;
      if (whole) {
        i == 0 ? scale_block(from, weight, block.data()) : add_block(from, weight, block.data());
      } else {
        i == 0 ? scale_rest(from, weight, block) : add_rest(from, weight, block);
      }
    }
  }
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
      add_rest(part.gradient + i * row_size, part.weight,
               std::span(mean.values).subspan(at * row_size, row_size));
    }
  }
}

// Several sums stand side by side, since each addition waits for the one before.
double sum_of_squares(std::span<const float> values) {
  std::array<double, 8> sums{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[i % sums.size()] += double(values[i]) * double(values[i]);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace paceline
