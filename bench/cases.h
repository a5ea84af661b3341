// The cases of `paceline bench`.
#pragma once

#include <span>
#include <string_view>

#include "bench/recorder.h"

namespace paceline::bench {

struct Case {
  std::string_view name, help;
  /// Null for `step`, which takes a model and flags (bench/step_rates.h).
  void (*measure)(Recorder&);
};

std::span<const Case> all_cases();
/// Throws kUsage with a message such as "unknown case 'rof'; did you mean 'roof'? (roof, step, …)".
const Case& find_case(std::string_view name);

}  // namespace paceline::bench
