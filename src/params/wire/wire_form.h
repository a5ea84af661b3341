// The form of contributions between hosts, as --wire and --top-k choose it.
#pragma once

#include <string>

#include "params/wire/travelling_type.h"

namespace paceline {

/// With error feedback, a contribution takes longer to make.
struct WireForm {
  ContributionForm numbers = {};
  bool error_feedback = false;

  bool exact() const { return numbers.exact(); }
  /// All numbers of a value travel, in a type that loses no more than that of contributions.
  ContributionForm of_values() const { return type_of_values(numbers.type); }
  /// "bfloat16, 8 of 256"; empty when the numbers travel as they are.
  std::string text() const;
  /// " --wire bfloat16 --top-k 8".
  std::string flags() const;
  bool operator==(const WireForm&) const = default;
};

}  // namespace paceline
