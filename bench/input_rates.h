// The case `input`: images per second of input pipelines.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/recorder.h"
#include "paceline/data.h"

namespace paceline::bench {

struct InputCase {
  std::string name;
  Pipeline pipeline;
};

/// Returns the pipelines over generated images, which it writes to `folder`. Describes the JPEG
/// files in `note`.
std::vector<InputCase> input_cases(const std::string& folder, std::int64_t images,
                                   std::int64_t photos, std::string& note);
void measure_input(Recorder& recorder);

}  // namespace paceline::bench
