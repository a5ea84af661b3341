#include "params/towers/tower_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "paceline/error.h"
#include "params/accumulate/contribution_sum.h"
#include "params/shard/contribution_mean.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// The number of elements in a part of a mean, which takes some microseconds. The cut into parts,
// and the order in which squares are summed, depend on the shape alone.
constexpr std::int64_t kPart = 16 * 1024;
// Sums of this many elements stay in the first cache.
constexpr std::int64_t kBlock = 256;

using Sources = std::array<const float*, kMostTowers>;
using Sums = std::array<std::array<float, kBlock>, kMostTowers / 2>;

// Adds up the first `count` of the sums, in pairs, so that sums[0] becomes the sum of all. Each of
// the sums has `size` elements.
void add_pairs(Sums& sums, std::size_t count, std::int64_t size) {
  while (count > 1) {
    for (std::size_t i = 0; i < count; i += 2) {
      float* const to = sums[i / 2].data();
      const float* const left = sums[i].data();
      const float* const right = sums[std::min(i + 1, count - 1)].data();
      const bool pair = i + 1 < count;
      for (std::int64_t k = 0; k < size; ++k) to[k] = pair ? left[k] + right[k] : left[k];
    }
    count = (count + 1) / 2;
  }
}

// Writes factor · (sum of the sources), for the elements from `begin` on. There are `size`
// elements, at most kBlock.
void add_block(const Sources& sources, std::size_t count, std::int64_t begin, std::int64_t size,
               float factor, float* into) {
  Sums sums;
  for (std::size_t i = 0; i < count; i += 2) {
    float* const to = sums[i / 2].data();
    const float* const left = sources[i] + begin;
    if (i + 1 == count) {
      std::copy_n(left, size, to);
      continue;
    }
    const float* const right = sources[i + 1] + begin;
    for (std::int64_t k = 0; k < size; ++k) to[k] = left[k] + right[k];
  }
  add_pairs(sums, (count + 1) / 2, size);
  for (std::int64_t k = 0; k < size; ++k) into[begin + k] = sums[0][std::size_t(k)] * factor;
}

void add_tree(const Sources& sources, std::size_t count, std::int64_t begin, std::int64_t end,
              float factor, float* into) {
  for (; begin < end; begin += kBlock) {
    add_block(sources, count, begin, std::min(kBlock, end - begin), factor, into);
  }
}

template <typename F>
void for_parts(ThreadPool* pool, std::size_t parts, F&& function) {
  const auto all = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) function(part);
  };
  if (pool == nullptr) return all(0, std::int64_t(parts));
  pool->parallel_for(std::int64_t(parts), 1, all);
}

}  // namespace

TowerMean::TowerMean(const VariableSpec& spec, std::int64_t most_rows, int towers, bool squares,
                     ThreadPool* pool)
    : spec_(spec), pool_(pool), factor_(1.0f / float(towers)), sums_squares_(squares) {
  PACELINE_CHECK(towers >= 1 && towers <= kMostTowers);
  for (int tower = 0; tower < towers; ++tower) {
    places_.emplace_back(spec.dtype, contribution_shape(spec, most_rows));
  }
  if (!spec.sparse) {
    squares_.resize(std::size_t((spec.shape.elements() + kPart - 1) / kPart));
    return;
  }
  rows_.reserve(std::size_t(most_rows) * std::size_t(towers));
  ids_.reserve(std::size_t(ContributionSum::most_rows_of_mean(spec, most_rows, towers)));
  squares_.resize(ids_.capacity());
}

// Scales the contributions by their numbers of examples. A tower that has the mean number of
// examples has weight 1, so equal batches are summed as they are.
void TowerMean::weigh(std::span<const Contribution> of_towers,
                      std::span<const std::int64_t> examples) {
  const std::int64_t all = std::accumulate(examples.begin(), examples.end(), std::int64_t{0});
  const std::int64_t elements = spec_.sparse ? row_elements(spec_) : spec_.shape.elements();
  for (std::size_t tower = 0; tower < places_.size(); ++tower) {
    const std::int64_t counts = examples[tower] * std::int64_t(places_.size());
    if (all == 0 || counts == all) continue;
    const float weight = float(double(counts) / double(all));
    const std::int64_t rows = spec_.sparse ? std::int64_t(of_towers[tower].ids.size()) : 1;
    float* const values = places_[tower].data<float>().data();
    const std::int64_t count = rows * elements;
    for_parts(pool_, std::size_t((count + kPart - 1) / kPart), [&](std::int64_t part) {
      const std::int64_t end = std::min(count, (part + 1) * kPart);
      for (std::int64_t i = part * kPart; i < end; ++i) values[i] *= weight;
    });
  }
}

Contribution TowerMean::take(std::span<const Contribution> of_towers,
                             std::span<const std::int64_t> examples, const TensorView& into) {
  float* const mean = into.as<float>();
  weigh(of_towers, examples);
  if (spec_.sparse) {
    collect_rows(of_towers);
    return take_rows(mean);
  }
  Sources sources;
  for (std::size_t i = 0; i < places_.size(); ++i) sources[i] = places_[i].data<float>().data();
  const std::int64_t elements = spec_.shape.elements();
  for_parts(pool_, squares_.size(), [&](std::int64_t part) {
    const std::int64_t begin = part * kPart, end = std::min(elements, begin + kPart);
    add_tree(sources, places_.size(), begin, end, factor_, mean);
    note_squares(std::size_t(part), mean + begin, end - begin);
  });
  return {};
}

void TowerMean::collect_rows(std::span<const Contribution> of_towers) {
  const std::int64_t elements = row_elements(spec_);
  rows_.clear();
  for (std::size_t tower = 0; tower < of_towers.size(); ++tower) {
    const float* values = places_[tower].data<float>().data();
    for (const std::int32_t id : of_towers[tower].ids) {
      if (id < 0 || id >= spec_.shape[0]) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("[variable {}] row {} of a contribution is outside [0,{})",
                                spec_.name, id, spec_.shape[0]));
      }
      rows_.push_back({id, int(tower), values});
      values += elements;
    }
  }
  std::ranges::sort(rows_, {}, [](const Row& row) { return std::tuple(row.id, row.tower); });
}

Contribution TowerMean::take_rows(float* into) {
  const std::int64_t elements = row_elements(spec_);
  ids_.clear();
  for (auto row = rows_.begin(); row != rows_.end();) {
    Sources sources;
    std::size_t count = 0;
    const std::int32_t id = row->id;
    for (; row != rows_.end() && row->id == id; ++row) sources[count++] = row->values;
    add_tree(sources, count, 0, elements, factor_, into);
    note_squares(ids_.size(), into, elements);
    ids_.push_back(id);
    into += elements;
  }
  return {.sparse = true, .ids = ids_};
}

void TowerMean::note_squares(std::size_t part, const float* values, std::int64_t count) {
  if (sums_squares_) squares_[part] = sum_of_squares({values, std::size_t(count)});
}

double TowerMean::squares() const {
  const std::size_t parts = spec_.sparse ? ids_.size() : squares_.size();
  return std::accumulate(squares_.begin(), squares_.begin() + std::ptrdiff_t(parts), 0.0);
}

}  // namespace paceline
