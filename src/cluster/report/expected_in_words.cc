#include "cluster/report/expected_in_words.h"

#include <fmt/format.h>

namespace paceline {

std::string expected_in_words(const Report& run) {
  const std::optional<double> made = run.steps_per_s();
  if (!run.expected || !made) return "";
  const ExpectedSpeed& expected = *run.expected;
  const bool inside = *made >= expected.low && *made <= expected.high;
  return fmt::format("Expected {:.3g} steps/s ({:.3g} to {:.3g}) and made {:.3g}{}",
                     expected.steps_per_s, expected.low, expected.high, *made,
                     inside ? "." : fmt::format(": {:.2f} of it.", *made / expected.steps_per_s));
}

}  // namespace paceline
