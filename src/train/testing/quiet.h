// For tests: options of a run that prints nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "paceline/run_options.h"

namespace paceline {

inline RunOptions quiet(std::optional<std::int64_t> steps = {}) {
  RunOptions run;
  run.quiet = true;
  run.steps = steps;
  return run;
}

}  // namespace paceline
