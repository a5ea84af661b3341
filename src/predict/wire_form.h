// What a form of --wire and --top-k is called, and the time that it takes.
#pragma once

#include <string>

#include "params/wire/travelling_type.h"

namespace paceline {

/// Contributions as they travel between hosts; error feedback adds to the time of making them.
struct WireForm {
  ContributionForm numbers = {};
  bool error_feedback = false;

  bool exact() const { return numbers.exact(); }
  /// Values travel in whole numbers, of a type that loses less.
  ContributionForm of_values() const { return type_of_values(numbers.type); }
  /// "int8, 8 of 256"; empty: as they are.
  std::string text() const;
  /// " --wire int8 --top-k 8".
  std::string flags() const;
  bool operator==(const WireForm&) const = default;
};

/// The seconds of a core for each byte of float32 that is made to travel, and made float32 of
/// again. Constants, measured on one core of an AMD EPYC (Zen 5) in blocks that lie in its cache.
double pack_s_per_byte(const ContributionForm& form, bool error_feedback);
double unpack_s_per_byte(const ContributionForm& form);

}  // namespace paceline
