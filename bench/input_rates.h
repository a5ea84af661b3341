// The case `input`: how many images a second input pipelines make.
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

/// The pipelines over generated images in `folder`, which they are written to.
std::vector<InputCase> input_cases(const std::string& folder, std::int64_t images,
                                   std::int64_t photos, std::string& note);
void measure_input(Recorder& recorder);

}  // namespace paceline::bench
