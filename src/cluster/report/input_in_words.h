// Says when the input limits training, and which of its stages does.
#pragma once

#include <string>

#include "cluster/report/report.h"

namespace paceline {

/// "The input is the limit, at decode: its 2 threads could make 389 images/s, and the rest of the
/// step could take 1,200 images/s." when at least 5% of the step's time went to waiting for
/// batches; and how many bad records were left out. Empty when there is nothing to say.
std::string input_in_words(const TaskReport& worker);

}  // namespace paceline
