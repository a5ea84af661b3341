// The sum of a variable's contributions in several steps, and their mean.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "paceline/tensor.h"

namespace paceline {

/// Allocates nothing after its construction.
class ContributionSum {
 public:
  /// `most_rows` is the most rows of one contribution to a sparse variable. `pool` may be null; it
  /// must outlive the sum.
  ContributionSum(const VariableSpec& spec, std::int64_t most_rows, int contributions,
                  ThreadPool* pool);
  /// Returns the most rows that the mean of a sparse variable can have.
  static std::int64_t most_rows_of_mean(const VariableSpec& spec, std::int64_t most_rows,
                                        int contributions);

  /// Returns the memory for the next contribution.
  TensorView place();
  /// Adds the contribution that was written to place(), which counts `weight` times. Throws
  /// kInvalidArgument for an id that is no row.
  void add(const Contribution& contribution, float weight = 1);
  bool empty() const { return added_ == 0; }
  /// Writes the sum divided by the weights of the contributions to `into`, and begins anew. Rows
  /// are in the ascending order of their ids, which are valid until the next mean.
  Contribution take_mean(const TensorView& into);
  /// Returns the sum of squares of the mean that take_mean() has written to `mean`, which must be
  /// unchanged since then.
  double squares(const TensorView& mean) const;

 private:
  void add_rows(std::span<const std::int32_t> ids, float weight);
  Contribution take_rows(float* into, float factor);
  std::int64_t row_elements() const;

  const VariableSpec& spec_;
  ThreadPool* const pool_;
  int added_ = 0;
  double weights_ = 0;  // of those added
  Tensor sum_, next_;
  // Row ids_[i] of a sparse variable is summed in row i of sum_.
  std::vector<std::int32_t> ids_, sorted_ids_, order_;
  std::vector<std::int32_t> index_;  // by row of the variable: index in ids_, or kNowhere
};

}  // namespace paceline
