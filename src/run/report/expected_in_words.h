// Says how the speed of a run compares with the one that was predicted before its first step.
#pragma once

#include <string>

#include "run/report/report.h"

namespace paceline {

/// Returns "Expected 11.2 steps/s (10.6 to 11.7) and made 11.0."; empty if one of the two is not
/// known.
std::string expected_in_words(const Report& run);

}  // namespace paceline
