// Says what holds a simulated job back.
#pragma once

#include <string>

#include "predict/forecast.h"

namespace paceline {

/// "ps:0's link carries 118 MB/s; 8 workers ask for 166": one cause.
std::string limit_in_words(const ForecastJob& hosts, const SimulatedJob& job,
                           const SimulatedSpeed& speed);

}  // namespace paceline
