// Says how near a run came to the speed that was expected before its first step.
#pragma once

#include <string>

#include "run/report/report.h"

namespace paceline {

/// "Expected 11.2 steps/s (10.6 to 11.7) and made 11.0." Empty when one of the two is not known.
std::string expected_in_words(const Report& run);

}  // namespace paceline
