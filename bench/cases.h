// The cases of `paceline bench`.
#pragma once

#include <span>
#include <string_view>

#include "bench/recorder.h"

namespace paceline::bench {

struct Case {
  std::string_view name, help;
  /// Null: `step`, which takes a model and flags (bench/step_rates.h), and `reports` and
  /// `foresight`, which take a selection (bench/report_rates.h, bench/foresight_rates.h).
  void (*measure)(Recorder&);
  bool usual = true;  // is measured when no case is named
  int repeats = 9;    // of every figure, unless the user says how many
};

std::span<const Case> all_cases();
/// Throws kUsage "unknown case 'rof'; did you mean 'roof'? (roof, step, …)".
const Case& find_case(std::string_view name);

}  // namespace paceline::bench
