// The names of the forms of --wire and --top-k.
#pragma once

#include <string>

#include "params/wire/travelling_type.h"

namespace paceline {

/// The form of contributions between hosts. Contributions take longer to make with error feedback.
struct WireForm {
  ContributionForm numbers = {};
  bool error_feedback = false;

  bool exact() const { return numbers.exact(); }
  /// Values travel whole, in a type that loses less than that of contributions.
  ContributionForm of_values() const { return type_of_values(numbers.type); }
  /// "int8, 8 of 256"; empty: as they are.
  std::string text() const;
  /// " --wire int8 --top-k 8".
  std::string flags() const;
  bool operator==(const WireForm&) const = default;
};

}  // namespace paceline
