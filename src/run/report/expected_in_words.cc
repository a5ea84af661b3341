#include "run/report/expected_in_words.h"

#include <fmt/format.h>

#include "base/printed.h"

namespace paceline {

std::string expected_in_words(const Report& run) {
  const std::optional<double> made = run.steps_per_s();
  if (!run.expected || !made) return "";
  const ExpectedSpeed& expected = *run.expected;
  const bool inside = *made >= expected.low && *made <= expected.high;
  return fmt::format(
      "Expected {} steps/s ({} to {}) and made {}{}", rounded(expected.steps_per_s),
      rounded(expected.low), rounded(expected.high), rounded(*made),
      inside ? "." : fmt::format(": {} of it.", times_of(*made / expected.steps_per_s)));
}

}  // namespace paceline
