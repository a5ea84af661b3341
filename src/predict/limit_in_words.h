// Says what holds a simulated job back.
#pragma once

#include <string>

#include "predict/prediction.h"

namespace paceline {

struct NamedLimit {
  Limit kind = Limit::kAnswers;
  std::string words;
};

/// "ps:0's link carries 118 MB/s; 8 workers ask for 166": one cause.
NamedLimit limit_in_words(const PredictedJob& hosts, const SimulatedJob& job,
                          const SimulatedSpeed& speed);

}  // namespace paceline
