#include "explain/finding.h"

#include <fmt/format.h>

#include "base/plain_text.h"
#include "base/printed.h"

namespace paceline {

std::string Finding::text(double steps_per_s) const {
  std::string text = sentence;
  constexpr double kWorthANumber = 1.02;
  const double from = speed > 0 ? speed : steps_per_s;
  if (!advice.empty()) {
    text += " " + advice;
    const bool counts = gain >= kWorthANumber && from > 0;
    if (counts) text += fmt::format(": {} → {} {}", rounded(from), rounded(gain * from), unit);
    text += ".";
  }
  return plain_text(text);  // names come from other tasks, or from a file
}

}  // namespace paceline
