// The refusal of a contribution with NaN or infinity (--on-nan stop).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "paceline/error.h"

namespace paceline {

/// Thrown when an element of a contribution is not finite. Other elements of the contribution may
/// have been applied by then.
class NotFinite : public Error {
 public:
  /// `what` names the element and its value: "element 17 is nan".
  NotFinite(const std::string& variable, const std::string& what);
  /// Returns the error that ends the job. Its text also names the task that contributed, and its
  /// step.
  Error of(const std::string& task, std::int64_t step) const;
  const std::string& variable() const { return variable_; }

 private:
  std::string variable_, what_;
};

/// Throws NotFinite for the first value that is not finite. `values` are elements of a contribution
/// to the variable, from element `first` on.
void check_finite(const std::string& variable, std::int64_t first, std::span<const float> values);
/// Does the same for a contribution of rows, by their ids in the variable: `values` is
/// (rows.size(), row_elements).
void check_rows_finite(const std::string& variable, std::span<const std::int32_t> rows,
                       std::int64_t row_elements, const float* values);

}  // namespace paceline
