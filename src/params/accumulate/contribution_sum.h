// The sum of a variable's contributions in several steps, and their mean.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "paceline/tensor.h"

namespace paceline {

/// Allocates nothing once it is made.
class ContributionSum {
 public:
  /// `most_rows`: of one contribution to a sparse variable. `pool` may be null; it must outlive the
  /// sum.
  ContributionSum(const VariableSpec& spec, std::int64_t most_rows, int contributions,
                  ThreadPool* pool);
  /// Of the mean of a sparse variable.
  static std::int64_t most_rows_of_mean(const VariableSpec& spec, std::int64_t most_rows,
                                        int contributions);

  /// Where the next contribution is to be written.
  TensorView place();
  /// Adds what was written there. Throws kInvalidArgument for an id that is no row.
  void add(const Contribution& contribution);
  bool empty() const { return added_ == 0; }
  /// Writes the sum divided by the number of contributions to `into`, and begins anew. Rows come in
  /// the ascending order of their ids, which are valid until the next mean.
  Contribution take_mean(const TensorView& into);
  /// The sum of squares of the mean that was taken last, before anybody has changed `mean`.
  double squares(const TensorView& mean) const;

 private:
  void add_rows(std::span<const std::int32_t> ids);
  Contribution take_rows(float* into);
  std::int64_t row_elements() const;

  const VariableSpec& spec_;
  const int contributions_;
  ThreadPool* const pool_;
  int added_ = 0;
  Tensor sum_, next_;
  // Of a sparse variable: the row ids_[i] is summed in row i of sum_.
  std::vector<std::int32_t> ids_, sorted_ids_, order_;
  std::vector<std::int32_t> index_;  // by row of the variable: into ids_, or kNowhere
};

}  // namespace paceline
