// The mean of the contributions of several towers to one variable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "paceline/tensor.h"

namespace paceline {

constexpr int kMostTowers = 64;

/// Sums each element in the order of a balanced tree, ((0 + 1) + (2 + 3)) + …: the result depends
/// on the contributions alone, never on threads or time. Allocates nothing after its construction.
class TowerMean {
 public:
  /// `most_rows` is the most rows of one contribution to a sparse variable. `pool` may be null;
  /// `pool` and `spec` must outlive the mean. If `squares` is true, squares() may be called.
  TowerMean(const VariableSpec& spec, std::int64_t most_rows, int towers, bool squares,
            ThreadPool* pool);
  TowerMean(const TowerMean&) = delete;
  TowerMean& operator=(const TowerMean&) = delete;

  const VariableSpec& spec() const { return spec_; }
  /// Returns the memory for a tower's contribution.
  TensorView place(int tower) const { return places_[std::size_t(tower)].view(); }
  /// Writes the mean of the contributions in the places, one for each tower, to `into`. Each
  /// contribution counts by its examples. If the examples differ, contributions are scaled in their
  /// places. A row that a tower lacks counts as zero. Rows of the mean are in the ascending order
  /// of their ids, which are valid until the next call. Throws kInvalidArgument for an id that is
  /// no row.
  Contribution take(std::span<const Contribution> of_towers, std::span<const std::int64_t> examples,
                    const TensorView& into);
  /// Returns the sum of squares of the last mean.
  double squares() const;

 private:
  struct Row {
    std::int32_t id;
    int tower;
    const float* values;
  };
  void weigh(std::span<const Contribution> of_towers, std::span<const std::int64_t> examples);
  void collect_rows(std::span<const Contribution> of_towers);
  Contribution take_rows(float* into);
  void note_squares(std::size_t part, const float* values, std::int64_t count);

  const VariableSpec& spec_;
  ThreadPool* const pool_;
  const float factor_;
  const bool sums_squares_;
  std::vector<Tensor> places_;   // by tower
  std::vector<double> squares_;  // by part of the mean
  std::vector<Row> rows_;
  std::vector<std::int32_t> ids_;
};

}  // namespace paceline
