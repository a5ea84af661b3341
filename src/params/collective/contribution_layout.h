// The layout of a worker's contributions. All variables lie side by side in one memory, in the same
// order on every worker, so that one reduction can serve several small variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

class ContributionLayout {
 public:
  explicit ContributionLayout(std::span<const VariableSpec> variables);
  std::size_t bytes() const { return bytes_; }
  /// Returns the place of a contribution's values, which have at most the variable's shape.
  std::size_t offset(VariableId variable) const { return offsets_[std::size_t(variable)]; }
  /// Returns the place of a sparse contribution's row ids.
  std::size_t ids_offset(VariableId variable) const { return ids_[std::size_t(variable)]; }

 private:
  std::size_t bytes_ = 0;
  std::vector<std::size_t> offsets_, ids_;  // by variable
};

/// The variables that one reduction sums: dense variables that lie side by side, or one sparse
/// variable.
struct Bucket {
  std::vector<VariableId> variables;  // ascending
  bool sparse = false;
  std::size_t offset = 0;    // the bucket's place in the layout, in bytes
  std::size_t elements = 0;  // float32 numbers, including the gaps between two variables
  /// The place in the plan of the first use of any of the variables. LinkCollectives reduces the
  /// bucket with the lowest number first, MpiCollectives the one with the highest.
  std::size_t priority = 0;
};

/// Returns the buckets of the variables to which a plan contributes. They are equal on all workers
/// that have the same plan.
std::vector<Bucket> buckets_of(std::span<const VariableSpec> variables,
                               const ContributionLayout& layout, const PlanBinding& plan);
/// Returns a number that two lists of buckets share only if they are equal.
std::uint64_t fingerprint_of(std::span<const Bucket> buckets);

}  // namespace paceline
